"""What a run leaves behind, and how to read it without torch: record.json and append-only JSONL files."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any, NamedTuple

from rlexp.errors import UsageError
from rlexp.runs import stored
from rlexp.system.files import open_file, validate

SCHEMA_VERSION = 1
RECORD = "record.json"
CONFIG = "config.yaml"
METRICS = "metrics.jsonl"
EVALUATIONS = "evaluations.jsonl"
TRACKED = "periods.jsonl"  # rows of the environment's tracker
DISCARDED = "discarded.jsonl"
CHECKPOINTS = "checkpoints"
LOCK = ".lock"
_PIECE = 1 << 20  # bytes read at a time

_CLAIM_SECONDS = 0.5  # checking whether a run is in use locks it for a moment

DEAD = "dead"  # never written: what "running" means when no process holds the run folder
_PACKAGES = (
    "rlexp",
    "torch",
    "stable-baselines3",
    "sb3-contrib",
    "gymnasium",
    "minigrid",
    "numpy",
    "hydra-core",
    "wandb",
)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a whole file so that a reader, or a kill at any moment, sees the old or the new one, never a part.

    :raises OSError: when it cannot be written, naming the file; the old one is untouched then
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open_file(temporary, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write ``record.json``."""
    write_atomically(folder / RECORD, json.dumps(record, indent=2, sort_keys=True) + "\n")


def read_record(folder: Path) -> dict[str, Any]:
    """Read and validate ``record.json``; no link in the folder is followed.

    :raises UsageError: when the folder holds no run, holds links, or its record is damaged
    """
    path = folder / RECORD
    try:
        validate(folder)
        os.lstat(folder)
    except UsageError:
        raise
    except FileNotFoundError:
        pass  # said below
    except (OSError, ValueError) as error:  # too long, or with a NUL character
        raise UsageError(
            f"{shorten_path(folder)}: no run here ({getattr(error, 'strerror', None) or error})"
        ) from error
    if not path.is_file():
        raise UsageError(f"{folder}: no run here ({RECORD} is missing)")
    try:
        return stored.read_record(path)
    except (ValueError, OSError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"{folder}: damaged run, {RECORD} cannot be read ({error}); force=true trains from scratch"
        ) from error


def shorten_path(path: Path) -> str:
    """Return a path that fits a line and holds no NUL character."""
    text = str(path).replace("\0", "\\0")
    return text if len(text) <= 200 else f"{text[:100]}...{text[-100:]}"


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Read the complete rows of a JSONL file; a last line cut off by a kill is left out.

    :raises UsageError: when a row other than the last one is no JSON object, or when the file is a link
    """
    if not path.is_file():
        return []
    with open_file(path, "rb") as file:
        lines = file.read().split(b"\n")
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last newline was never finished
        try:
            row = stored.parse_json(line)
        except ValueError as error:
            raise UsageError(f"{path}: damaged, line {number} is no JSON ({error})") from error
        if not isinstance(row, dict):
            raise UsageError(f"{path}: damaged, line {number} is not a row")
        rows.append(row)
    return rows


def read_evaluations(folder: Path) -> list[dict[str, Any]]:
    """Read and validate the evaluations of a run.

    :raises UsageError: when a row cannot be read or lacks what every evaluation has
    """
    path = folder / EVALUATIONS
    rows = read_jsonl(path)
    for number, row in enumerate(rows, start=1):
        try:
            stored.validate_row(row, "row", ("episodes", "timesteps"))
        except ValueError as error:
            raise UsageError(f"{path}: damaged, line {number}: {error}") from error
    return rows


class Extent(NamedTuple):
    """How far a file has been written: its length in bytes and the SHA-256 of them, None where it is unknown."""

    length: int
    sha256: str | None


def digest(file: IO[bytes], length: int | None = None) -> Extent:
    """Read a file from where it stands and return what was read.

    :param length: only so many bytes; None: all
    """
    found = hashlib.sha256()
    return Extent(_hash_into(found, file, length), found.hexdigest())


def sha256(path: Path) -> str | None:
    """Return the SHA-256 of a whole file.

    :raises OSError: when it cannot be read
    """
    with open_file(path, "rb") as file:
        return digest(file).sha256


def _hash_into(found: Any, file: IO[bytes], length: int | None = None) -> int:
    done = 0
    while piece := file.read(_PIECE if length is None else min(_PIECE, length - done)):
        found.update(piece)
        done += len(piece)
    return done


def mismatch(path: Path, extent: Extent) -> str | None:
    """Return why a file does not begin with what a checkpoint continues, None when it does."""
    if extent.length == 0:
        return None
    try:
        with open_file(path, "rb") as file:
            found = digest(file, extent.length)
    except FileNotFoundError:
        return f"{path.name} is missing"
    except OSError as error:
        return f"{path.name} cannot be read ({error.strerror})"
    if found.length < extent.length:
        return f"{path.name} has lost rows: {found.length:,} bytes of {extent.length:,}"
    if extent.sha256 is not None and found.sha256 != extent.sha256:
        return f"{path.name} has been changed"
    return None


class JsonlWriter:
    """Appends rows, each as one write.

    :param path: file to append to
    :param keep_bytes: length of the file at the checkpoint that is being resumed; rows written after it are moved to
        ``discarded.jsonl`` beside it, since they will be written again. None: append to whatever is there.
    """

    def __init__(self, path: Path, keep_bytes: int | None = None) -> None:
        if keep_bytes is not None and path.is_file():
            _set_aside(path, keep_bytes)
        self._path = path
        self._file = open_file(path, "ab", buffering=0)
        self._hash = hashlib.sha256()  # carried along, so that a checkpoint of a long run reads nothing again
        with open_file(path, "rb") as written:
            self._length = _hash_into(self._hash, written)

    def append(self, row: dict[str, Any]) -> None:
        """Append one row.

        :raises OSError: when it cannot be written, naming the file, which ends with the row before then
        """
        line = (json.dumps(row, allow_nan=False) + "\n").encode()
        written = 0
        try:
            while written < len(line):
                written += self._file.write(line[written:])
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(os.fstat(self._file.fileno()).st_size - written)
            raise OSError(error.errno, error.strerror, str(self._path)) from error
        self._hash.update(line)
        self._length += len(line)

    def extent(self) -> Extent:
        """Return how far the file has been written."""
        return Extent(self._length, self._hash.hexdigest())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _set_aside(path: Path, keep_bytes: int) -> None:
    """Move what follows some bytes of a file to ``discarded.jsonl``; on disk there before it is cut off here."""
    with open_file(path, "rb+") as file:
        file.seek(keep_bytes)
        surplus = file.read()
        if not surplus:
            return
        with open_file(path.parent / DISCARDED, "ab") as discarded:
            discarded.write(surplus if surplus.endswith(b"\n") else surplus + b"\n")
            discarded.flush()
            os.fsync(discarded.fileno())
        file.truncate(keep_bytes)


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Hold a run folder for this process; the claim ends with the process, however it ends.

    :raises UsageError: when another process is working on this run
    """
    validate(folder)
    lock = open_file(folder / LOCK, "a+")
    until = time.monotonic() + _CLAIM_SECONDS
    while not _lock(lock, fcntl.LOCK_EX):
        if time.monotonic() > until:
            lock.close()
            raise UsageError(f"{folder}: another process is working on this run")
        time.sleep(_CLAIM_SECONDS / 10)
    try:
        yield
    finally:
        lock.close()


def in_use(folder: Path) -> bool:
    """Return whether some process holds the run folder right now."""
    try:
        lock = open_file(folder / LOCK, "rb")
    except (OSError, UsageError):
        return False
    with lock:
        return not _lock(lock, fcntl.LOCK_SH)


def status(folder: Path, record: dict[str, Any]) -> str:
    """Return a record's status; ``dead`` when it says ``running`` but its process is gone, as after ``kill -9``."""
    found: str = record["status"]
    return DEAD if found == "running" and not in_use(folder) else found


def end_lost(folder: str | Path, error: str) -> None:
    """Write for a process that is gone why its run has ended, unless it has written that itself.

    :raises UsageError: when the run is still alive, or cannot be read
    """
    folder = Path(folder)
    with claimed(folder):
        record = read_record(folder)
        if record["status"] == "running":
            write_record(folder, {**record, "status": "failed", "error": error, "ended": now()})
            print(f"failed: {error}", file=sys.stderr)


def _lock(file: IO[Any], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def set_aside(folder: Path) -> Path:
    """Move a run out of the way until the one that replaces it has finished."""
    number = 1
    while (aside := folder.with_name(f"{folder.name}.previous-{number}")).exists():
        number += 1
    folder.rename(aside)
    return aside


def drop_previous(folder: Path) -> None:
    """Delete what :func:`set_aside` kept; called when the replacement has finished."""
    for aside in folder.parent.glob(f"{folder.name}.previous-*"):
        shutil.rmtree(aside, ignore_errors=True)


def now() -> str:
    """Return the time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def provenance() -> dict[str, Any]:
    """Return where numbers come from: command, code, versions, machine."""
    return {
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "git": _git_state(),
        "versions": versions(),
        "machine": {
            "system": platform.platform(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
        },
    }


def versions() -> dict[str, str | None]:
    """Return the version of every package that numbers depend on, None where it is not installed."""
    return {name: _version(name) for name in _PACKAGES} | {"python": platform.python_version()}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_state() -> dict[str, Any] | None:
    """Return commit and dirty flag of rlexp's own checkout, None when it is installed from a wheel."""
    top = Path(__file__).resolve().parents[2]
    if not (top / ".git").exists():
        return None

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(top), *arguments], capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()

    try:
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return None
