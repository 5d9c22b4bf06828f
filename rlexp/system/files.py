"""The one way to open, rename and delete files in a run folder or a dataset: no link in it is ever followed.

A run folder may be untrusted. The path that leads to it is the user's own and may hold links; below it,
every component is opened without following links, so that it does not matter when a link is put there. Functions take
``below``, the run folder, for files that lie deeper than directly in it.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

from rlexp.errors import UsageError

_WANDB = "wandb"
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_file(path: Path, mode: str, below: Path | None = None, buffering: int = -1) -> IO[Any]:
    """Open a regular file as :func:`open` does; text is UTF-8.

    :param path: file in a run folder
    :param below: the run folder; None: the folder in which the file lies
    :raises UsageError: when a component below the run folder is a link, or when it is not a regular file
    :raises OSError: when it cannot be opened
    """
    with _parent(path, below) as parent:

        def opener(_: str, flags: int) -> int:
            # Without O_NONBLOCK, a named pipe would hang the process before it can be recognised.
            more = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            handle = os.open(path.name, flags | more, 0o666, dir_fd=parent)
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise UsageError(f"{path}: is not a regular file; it is not opened")
            return handle

        try:
            return open(path, mode, buffering, encoding=None if "b" in mode else "utf-8", opener=opener)
        except OSError as error:
            _explain(error, path)


def read_text(path: Path, at_most: int, below: Path | None = None) -> str:
    """Read a text file.

    :param at_most: bytes
    :raises UsageError: see :func:`open_file`; and when it is longer
    :raises ValueError: when it is not UTF-8
    """
    with open_file(path, "rb", below) as file:
        content: bytes = file.read(at_most + 1)
    if len(content) > at_most:
        raise UsageError(f"{path}: is longer than {at_most:,} bytes; rlexp never writes such a file")
    return content.decode("utf-8")


def make_folder(path: Path, below: Path) -> None:
    """Make a folder in a run folder, unless it is there.

    :raises UsageError: when a component below the run folder is a link
    """
    with _parent(path, below) as parent:
        try:
            os.mkdir(path.name, dir_fd=parent)
        except FileExistsError:
            try:
                os.close(os.open(path.name, _FOLDER_FLAGS, dir_fd=parent))
            except OSError as error:
                _explain(error, path)


def rename(path: Path, name: str, below: Path | None = None) -> Path:
    """Give something in a run folder another name in the same place, replacing a file of that name.

    :return: the new path
    :raises UsageError: when a component below the run folder is a link
    """
    with _parent(path, below) as parent:
        os.rename(path.name, name, src_dir_fd=parent, dst_dir_fd=parent)
    return path.with_name(name)


def unlink(path: Path, below: Path | None = None) -> None:
    """Delete a file of a run folder; of a link, the link itself.

    :raises UsageError: when a component below the run folder is a link
    """
    with _parent(path, below) as parent:
        os.unlink(path.name, dir_fd=parent)


def remove_tree(path: Path, below: Path) -> None:
    """Delete a folder in a run folder with everything in it; links in it are deleted, not followed.

    :raises UsageError: when a component below the run folder is a link
    """
    with _parent(path, below) as parent:
        shutil.rmtree(path.name, ignore_errors=True, dir_fd=parent)  # rejects links by itself


def names(path: Path, below: Path) -> list[str]:
    """Return what a folder in a run folder holds; nothing when it is missing.

    :raises UsageError: when a component below the run folder is a link
    """
    try:
        with _parent(path / "*", below) as folder:
            return sorted(os.listdir(folder))  # noqa: PTH208  (a descriptor has no Path)
    except FileNotFoundError:
        return []


def validate(folder: Path) -> None:
    """Look through a run folder for links before anything in it is used.

    W&B's own links within its folder are left alone, and so is the one to its log, which rlexp never opens.

    :raises UsageError: naming the first link
    """
    for path in _links(folder):
        parts = path.relative_to(folder).parts
        if parts[0] == _WANDB and len(parts) > 1:
            inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
            if inside or parts[-2:] == ("logs", "debug-core.log"):
                continue
        raise UsageError(
            f"{folder}: {path.relative_to(folder)} is a link; no link in a run folder is followed, "
            "replace it by what it leads to, or remove it"
        )


def _links(folder: Path) -> Iterator[Path]:
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            entries = sorted(os.scandir(current), key=lambda entry: entry.name)
        except OSError:  # opening it reports why
            continue
        for entry in entries:
            if entry.is_symlink():
                yield Path(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))


@contextmanager
def _parent(path: Path, below: Path | None) -> Iterator[int]:
    """Open the folder in which something lies, following links on the way to the run folder only."""
    top = path.parent if below is None else below
    handle = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    reached = top
    try:
        for part in path.parent.relative_to(top).parts:
            reached /= part
            try:
                deeper = os.open(part, _FOLDER_FLAGS, dir_fd=handle)
            except OSError as error:
                _explain(error, reached)
            os.close(handle)
            handle = deeper
        yield handle
    finally:
        os.close(handle)


def _explain(error: OSError, path: Path) -> NoReturn:
    # A link is ELOOP, or ENOTDIR where a folder was asked for.
    if error.errno in (errno.ELOOP, errno.EMLINK) or (error.errno == errno.ENOTDIR and path.is_symlink()):
        raise UsageError(f"{path}: is a link, which is not followed") from error
    if error.errno in (errno.ENXIO, errno.EISDIR):  # a named pipe, socket or folder opened for writing
        raise UsageError(f"{path}: is not a regular file; it is not opened") from error
    raise OSError(error.errno, error.strerror, str(path)) from error
