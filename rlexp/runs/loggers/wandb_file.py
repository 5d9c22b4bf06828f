"""Reading W&B's file of an offline run: no account, no network, and none of W&B's processes.

The file is a log in LevelDB's format: blocks of 32 KiB that hold pieces of messages, each with a checksum. The messages
are W&B's own, read by its client's classes; earlier versions of the client had a reader of the log, later ones have
none for Python.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from rlexp.errors import UsageError
from rlexp.runs.loggers.wandb import FOLDER
from rlexp.system.files import names, open_file
from rlexp.system.terminal import inert

_BLOCK = 32 * 1024
_HEAD = 7  # bytes before the first piece, and before each
_FULL, _FIRST, _LAST = 1, 2, 4
_LARGEST = 64 << 20  # bytes of a message
_MOST_COLUMNS = 5_000
_DEEPEST = 24
_MOST_POINTS = 1_000_000  # of a curve


@dataclass
class Column:
    """A number that was logged, over all rows that have it."""

    count: int = 0
    lowest: float = math.inf
    highest: float = -math.inf
    last: float = math.nan

    def add(self, value: float) -> None:
        """Take the next value."""
        self.count += 1
        self.lowest, self.highest = min(self.lowest, value), max(self.highest, value)
        self.last = value


@dataclass
class OfflineRun:
    """What the file holds.

    :param info: name, project, group, tags, id
    :param config: by key, nested as it was logged
    :param summary: by key, as W&B's page of the run shows it
    :param columns: of the history, by key
    :param axes: the axis of a metric, or of all that ``section/*`` stands for
    :param points: ``(x, y)`` of the columns that were asked for, over their axis
    :param rows: of the history
    :param exit_code: None where the run was not ended
    :param complete: False where the file ends within a message, as after ``kill -9``
    """

    info: dict[str, str] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Column] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)
    points: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    rows: int = 0
    exit_code: int | None = None
    complete: bool = True

    def axis(self, column: str) -> str | None:
        """Return the axis of a column; a rule for the column itself, or for its section, precedes that for all."""
        section = f"{column.rpartition('/')[0]}/*"
        return next((self.axes[rule] for rule in (column, section, "*") if rule in self.axes), None)


def find(folder: Path) -> Path:
    """Return the newest W&B file of a run.

    :param folder: run folder, or W&B's own folder of a run
    :raises UsageError: when there is none
    """
    for top in (folder / FOLDER, folder):
        runs = [name for name in _names(top, folder) if name.startswith(("offline-run-", "run-"))]
        for run in sorted(runs, key=lambda name: name.partition("run-")[2], reverse=True):
            files = [name for name in _names(top / run, folder) if name.endswith(".wandb")]
            if files:
                return top / run / files[0]
    files = [name for name in _names(folder, folder) if name.endswith(".wandb")]
    if files:
        return folder / files[0]
    raise UsageError(f"{folder}: no W&B run here; a run has one with logger=wandb, which is the default")


def _names(folder: Path, below: Path) -> list[str]:
    try:
        return names(folder, below)
    except NotADirectoryError:
        return []


def read(path: Path, below: Path, curves: Iterable[str] = ()) -> OfflineRun:
    """Read a file.

    :param path: ends in ``.wandb``
    :param below: folder below which no link is followed
    :param curves: columns of which all points are kept
    :raises UsageError: when it is not such a file, or damaged
    """
    from google.protobuf.message import DecodeError
    from wandb.proto import wandb_internal_pb2

    found = OfflineRun(points={name: [] for name in curves})
    try:
        with open_file(path, "rb", below) as file:
            for message in messages(file, found):
                record = wandb_internal_pb2.Record()  # type: ignore[attr-defined]
                record.ParseFromString(message)
                _take(record, found)
    except UsageError:
        raise
    except (OSError, ValueError, RecursionError, DecodeError, OverflowError) as error:
        reason = str(error) or type(error).__name__
        raise UsageError(f"{path}: damaged, no W&B file that can be read ({reason})") from error
    return found


# ------------------------------------------------------------------------------------------------------- framing


def messages(file: IO[bytes], found: OfflineRun) -> Iterator[bytes]:
    """Return the messages of a file as bytes, one after another.

    :param file: from its beginning
    :param found: told whether the file is complete
    :raises ValueError: when it is no such file, or damaged
    """
    if file.read(_HEAD)[:4] != b":W&B":
        raise ValueError("it does not begin as one")
    position, parts = _HEAD, bytearray()
    while True:
        left = _BLOCK - position % _BLOCK
        if left < _HEAD:
            file.read(left)
            position += left
            continue
        head = file.read(_HEAD)
        if len(head) < _HEAD or not any(head):
            break
        checksum, length, kind = struct.unpack("<IHB", head)
        piece = file.read(length)
        position += _HEAD + length
        if len(piece) < length:
            parts += piece
            break
        if checksum != zlib.crc32(head[6:] + piece):  # W&B's: neither LevelDB's polynomial nor its mask
            raise ValueError("a checksum is wrong")
        if kind in (_FULL, _FIRST):
            parts.clear()
        parts += piece
        if len(parts) > _LARGEST:
            raise ValueError("a message is too long")
        if kind in (_FULL, _LAST):
            yield bytes(parts)
            parts.clear()
    found.complete = not parts


# ------------------------------------------------------------------------------------------------------ messages


def _take(record: Any, found: OfflineRun) -> None:
    kind = record.WhichOneof("record_type")
    if kind == "run":
        run = record.run
        found.info = {
            "run": inert(run.display_name),
            "id": inert(run.run_id),
            "project": inert(run.project),
            "group": inert(run.run_group),
            "tags": inert(", ".join(run.tags)),
        }
        _update(found.config, run.config.update)
    elif kind == "config":
        _update(found.config, record.config.update)
    elif kind == "summary":
        _update(found.summary, record.summary.update)
    elif kind == "metric":
        rule = inert(record.metric.name or record.metric.glob_name)
        if record.metric.step_metric:
            found.axes[rule] = inert(record.metric.step_metric)
    elif kind == "history":
        _add_row(dict(_items(record.history.item)), found)
    elif kind == "exit":
        found.exit_code = int(record.exit.exit_code)


def _add_row(row: dict[str, Any], found: OfflineRun) -> None:
    found.rows += 1
    for key, value in row.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if key not in found.columns and len(found.columns) >= _MOST_COLUMNS:
            raise ValueError(f"more than {_MOST_COLUMNS:,} columns")
        found.columns.setdefault(key, Column()).add(float(value))
        points = found.points.get(key)
        if points is not None and math.isfinite(value) and len(points) < _MOST_POINTS:
            place = row.get(found.axis(key) or "_step")
            if isinstance(place, (int, float)) and math.isfinite(place):
                points.append((float(place), float(value)))


def _update(target: dict[str, Any], items: Any) -> None:
    """Set keys, ``a`` or the path of one in nested dictionaries."""
    for item in items:
        node, path = target, [inert(part) for part in item.nested_key or (item.key,)]
        if len(path) > _DEEPEST or len(target) >= _MOST_COLUMNS:
            raise ValueError("its summary or config is too large")
        for part in path[:-1]:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise ValueError(f"{part} is no group of keys")
        node[path[-1]] = _plain(json.loads(item.value_json))


def _items(items: Any) -> Iterator[tuple[str, Any]]:
    """Return the entries of a row that are not parts of a table or a video."""
    for item in items:
        if item.key or len(item.nested_key) == 1:
            yield inert(item.key or item.nested_key[0]), json.loads(item.value_json)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {inert(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return inert(value) if isinstance(value, str) else value
