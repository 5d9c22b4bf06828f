"""Demonstrations in one ``.npz`` file that says where they come from.

``numpy.load`` with ``allow_pickle=False`` reads it; every episode stands behind the one before:

=====================  ============================================================================================
``header``             JSON as bytes: ``format``, ``version``, ``observation_space``, ``action_space``,
                       ``provenance`` (see :class:`~rlexp.demonstrations.dataset.Demonstrations`) and ``checksum``,
                       the SHA-256 of everything else
``lengths``            ``(n_episodes,)`` int64: actions of each episode
``observations``       ``(n_actions + n_episodes, ...)``: each episode's first to last; for observations in a
                       dictionary one member ``observations.<key>`` for every key
``actions``            ``(n_actions, ...)``
``rewards``            ``(n_actions,)`` float32
``terminated``         ``(n_episodes,)`` bool: the environment ended the episode
``truncated``          ``(n_episodes,)`` bool: a time limit ended it; the last observation may be bootstrapped from
=====================  ============================================================================================

The same demonstrations always give the same bytes.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from rlexp.demonstrations import header as headers
from rlexp.demonstrations.dataset import DAMAGE, Array, Demonstrations, observation_parts
from rlexp.demonstrations.space_serialization import space_from_json
from rlexp.errors import UsageError, first_line
from rlexp.system.archives import Shapes, announced

_HEADER_BYTES = 64 << 20
_MOST_EPISODES = 10_000_000
_WIDEST = 16  # bytes of a number


def write(path: Path, demonstrations: Demonstrations) -> None:
    """Write the file so that a kill at any moment leaves the old one, the new one or none.

    :raises ValueError: when an episode does not fit the spaces or is not complete
    """
    header, arrays = headers.describe(demonstrations)
    text = json.dumps(header, sort_keys=True, allow_nan=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            np.savez_compressed(
                file, allow_pickle=False, header=np.frombuffer(text.encode(), np.uint8), **arrays
            )
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read(path: Path) -> Demonstrations:
    """Read a file.

    :raises UsageError: in one line, when it is missing, cut off, damaged or something else
    """
    header, arrays = _open(path, everything=True)
    if not headers.is_bound(header, arrays):
        raise UsageError(f"{path}: damaged demonstrations, the checksum does not fit the content")
    try:
        observation_space = space_from_json(header["observation_space"])
        action_space = space_from_json(header["action_space"])
        episodes = headers.to_episodes(arrays, observation_space)
        provenance = dict(header["provenance"])
        found = Demonstrations(episodes, observation_space, action_space, provenance, header["checksum"])
        mismatch = found.mismatch()
    except DAMAGE as error:
        raise UsageError(f"{path}: demonstrations that cannot be understood ({first_line(error)})") from error
    if mismatch:
        raise UsageError(f"{path}: demonstrations that cannot be used: {mismatch}")
    return found


def read_header(path: Path) -> dict[str, Any]:
    """Read what a file says of itself, without its episodes and without checking them.

    :raises UsageError: as :func:`read`
    """
    return _open(path, everything=False)[0]


def _open(path: Path, everything: bool) -> tuple[dict[str, Any], dict[str, Array]]:
    if not path.is_file():
        raise UsageError(f"{path}: no such file of demonstrations; rlexp demos records one")
    try:
        with path.open("rb") as file:
            looks_right = file.read(4) == b"PK\x03\x04"
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    if not looks_right:
        raise UsageError(f"{path}: not a file of demonstrations; rlexp demos records one")
    try:
        with zipfile.ZipFile(path) as plain:
            shapes = announced(plain)
        with np.load(path, allow_pickle=False) as archive:
            if "header" not in shapes:
                raise UsageError(f"{path}: not a file of demonstrations; rlexp demos records one")
            if math.prod(shapes.pop("header")[0]) > _HEADER_BYTES:
                raise ValueError(f"its header is longer than {_HEADER_BYTES:,} bytes")
            header = json.loads(archive["header"].tobytes().decode())
            arrays: dict[str, Array] = {}
            if everything:
                headers.check(header, path)
                _check_plausible(header, shapes, archive)
                arrays = {name: np.asarray(archive[name]) for name in shapes}
    except UsageError:
        raise
    except DAMAGE as error:
        raise UsageError(
            f"{path}: demonstrations cut off or damaged ({first_line(error)}); collect them again"
        ) from error
    headers.check(header, path)
    return header, arrays


def _check_plausible(header: dict[str, Any], shapes: Shapes, archive: Any) -> None:
    """Compare what arrays announce with the lengths of the episodes, before any other array is unpacked.

    :raises ValueError: naming the first that announces more
    """
    provenance, n = header["provenance"], math.prod(shapes["lengths"][0])
    recorded = provenance.get("episodes", n)
    if n != recorded or n > _MOST_EPISODES:
        raise ValueError(f"lengths: {n:,} episodes announced, {recorded:,} were recorded")
    total = int(archive["lengths"].sum())
    recorded = provenance.get("steps", total)
    if total != recorded:
        raise ValueError(f"lengths: {total:,} steps announced, {recorded:,} were recorded")
    space = space_from_json(header["observation_space"])
    wanted: dict[str, tuple[int, ...]] = {
        "actions": (total, *(space_from_json(header["action_space"]).shape or ())),
        "rewards": (total,),
        "lengths": (n,),
        "terminated": (n,),
        "truncated": (n,),
    }
    for name, key in observation_parts(space).items():
        part = space if key is None else space[key]  # type: ignore[index]
        wanted[name] = (total + n, *(part.shape or ()))
    for name, (shape, kind) in shapes.items():
        if name not in wanted:
            raise ValueError(f"{name} is a member too many")
        if shape != wanted[name] or kind.itemsize > _WIDEST:
            raise ValueError(f"{name}: {kind} {shape} announced, the lengths say {wanted[name]}")
