"""Checkpoints on disk: complete or absent, and intact or recognised as damaged.

A checkpoint is a folder ``checkpoints/<timesteps>-<number>/``; the running number distinguishes checkpoints between
which no step was taken, e.g. those of pre-training. It holds ``state.json`` (a tree), ``arrays.npz`` (its leaves) and
``manifest.json``: length and SHA-256 of both, and of each JSONL file of the run up to the row at which the checkpoint
continues it. Folders named by timesteps alone are of the earlier format, without a manifest.

Arrays are in NumPy's own format, never unpickled: safetensors would open paths by itself, following links, and need a
second pass for the checksum, with no gain in time or memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from rlexp.algos.common import tensor_tree
from rlexp.errors import UsageError
from rlexp.runs.folder import EVALUATIONS, METRICS, TRACKED, Extent, digest
from rlexp.system.archives import announced, open_stored
from rlexp.system.files import make_folder, names, open_file, remove_tree, rename

STATE = "state.json"
ARRAYS = "arrays.npz"
MANIFEST = "manifest.json"
FORMAT = 2
_NAME = re.compile(r"(\d{12})(?:-(\d{6}))?")  # the earlier format has no number
_UNFINISHED = re.compile(r"\.\d{12}(-\d{6})?\.\d+")


class CheckpointError(RuntimeError):
    """A checkpoint that is damaged, or that does not fit the run that resumes from it."""


def save(
    root: Path,
    state: dict[str, Any],
    timesteps: int,
    keep_last: int,
    continues: dict[str, Extent] | None = None,
) -> Path:
    """Write one checkpoint atomically and remove all but the last ones.

    :param root: the run's ``checkpoints`` folder
    :param state: tree of dictionaries, lists, arrays, tensors and JSON values
    :param timesteps: taken so far; the first part of the name
    :param keep_last: checkpoints that stay
    :param continues: how far the run's JSONL files have been written, by name
    :raises OSError: when it cannot be written; then nothing of it is left, and the earlier ones are untouched
    """
    run = root.parent
    newest = next(iter(available(root)), None)
    number = 0 if newest is None else _order(newest)[1] + 1
    final = root / f"{timesteps:012d}-{number:06d}"
    temporary = root / f".{final.name}.{os.getpid()}"
    try:
        make_folder(root, run)
        make_folder(temporary, run)
        _write(temporary, state, continues or {})
        rename(temporary, final.name, run)
    except BaseException as error:
        with contextlib.suppress(OSError):
            remove_tree(temporary, run)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror or str(error), str(final)) from error
        raise
    _sync_folder(root)
    for old in available(root)[keep_last:]:
        remove_tree(old, run)
    for name in names(root, run):
        if _UNFINISHED.fullmatch(name):
            remove_tree(root / name, run)
    return final


def available(root: Path) -> list[Path]:
    """Return the complete checkpoints, newest first.

    :param root: the run's ``checkpoints`` folder
    """
    found = (root / name for name in names(root, root.parent) if _NAME.fullmatch(name))
    return sorted(filter(Path.is_dir, found), key=_order, reverse=True)


def move_away(folder: Path) -> None:
    """Rename a checkpoint, so that :func:`available` no longer lists it."""
    run = folder.parent.parent
    name = f"damaged-{folder.name}"
    remove_tree(folder.with_name(name), run)
    rename(folder, name, run)


def load(folder: Path) -> dict[str, Any]:
    """Read the state of one checkpoint; see :func:`read`."""
    return read(folder)[0]


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Extent]]:
    """Read one checkpoint.

    :return: the state, and how far the JSONL files had been written
    :raises CheckpointError: when anything of it is missing or not as it was written
    """
    try:
        manifest = _read_manifest(folder) if _order(folder)[1] >= 0 else None
        if manifest is not None:
            _verify(folder, manifest["files"])
        with _open(folder / STATE) as file:
            encoded = json.load(file)
        with _open(folder / ARRAYS) as file:
            announced(open_stored(file))
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                state = tensor_tree.decode(encoded, archive)
        if not isinstance(state, dict):
            raise CheckpointError(f"{STATE} holds no tree")
        if manifest is not None:
            continues = {str(name): Extent(*extent) for name, extent in manifest["continues"].items()}
        else:
            lengths = state.get("files", {})
            continues = {name: Extent(int(lengths[name]), None) for name in _JSONL if name in lengths}
    except UsageError:  # a link, which is not followed
        raise
    except CheckpointError as error:
        raise CheckpointError(f"checkpoint {folder.name}: {error}") from None
    except Exception as error:  # damaged bytes make json, zipfile and numpy raise all kinds of errors
        raise CheckpointError(f"checkpoint {folder.name}: {type(error).__name__}: {error}") from error
    return state, continues


_JSONL = (METRICS, EVALUATIONS, TRACKED)


def _order(folder: Path) -> tuple[int, int]:
    """Return timesteps and number of a checkpoint; the number is -1 in the earlier format."""
    match = _NAME.fullmatch(folder.name)
    assert match is not None, folder
    return int(match[1]), int(match[2] or -1)


def _open(path: Path, mode: str = "rb") -> IO[bytes]:
    return open_file(path, mode, below=path.parent.parent.parent)


def _write(folder: Path, state: dict[str, Any], continues: dict[str, Extent]) -> None:
    arrays: dict[str, tensor_tree.Array] = {}
    encoded = tensor_tree.encode(state, arrays)
    files = {}
    with _HashingFile(folder / ARRAYS) as file:
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        files[ARRAYS] = file.finish()
    with _HashingFile(folder / STATE) as file:
        file.write(json.dumps(encoded).encode())
        files[STATE] = file.finish()
    manifest = {"format": FORMAT, "files": files, "continues": continues}
    with _HashingFile(folder / MANIFEST) as file:
        file.write(json.dumps({**manifest, "sha256": _checksum(manifest)}, indent=1).encode())
        file.finish()


def _checksum(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _read_manifest(folder: Path) -> dict[str, Any]:
    with _open(folder / MANIFEST) as file:
        manifest = json.load(file)
    if not isinstance(manifest, dict) or manifest.pop("sha256", None) != _checksum(manifest):
        raise CheckpointError(f"{MANIFEST} is not as it was written")
    if manifest["format"] != FORMAT:
        raise CheckpointError(f"format {manifest['format']}, this version reads {FORMAT} and earlier")
    return manifest


def _verify(folder: Path, files: dict[str, Any]) -> None:
    for name in (STATE, ARRAYS):
        with _open(folder / name) as file:
            if digest(file) != Extent(*files[name]):
                raise CheckpointError(f"{name} is not as it was written")


class _HashingFile:
    """A file that is hashed while it is written, so that large arrays need not be read again.

    It cannot seek, so that zip archives never change what has been hashed.
    """

    def __init__(self, path: Path) -> None:
        self._file = _open(path, "wb")
        self._hash = hashlib.sha256()
        self._length = 0

    def __enter__(self) -> _HashingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, content: Any, /) -> int:
        self._hash.update(content)
        self._length += memoryview(content).nbytes
        return self._file.write(content)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def finish(self) -> Extent:
        """Force everything to disk and return what has been written."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return Extent(self._length, self._hash.hexdigest())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
