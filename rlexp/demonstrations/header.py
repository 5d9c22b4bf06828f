"""What demonstrations say of themselves, whatever they are stored in, and the checksum that binds it to the content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from rlexp.demonstrations.dataset import Array, Demonstrations, Episode, observation_parts, part_of
from rlexp.demonstrations.space_serialization import space_to_json
from rlexp.errors import UsageError

FORMAT = "rlexp demonstrations"
VERSION = 1

_SEPARATE = ("lengths", "actions", "rewards", "terminated", "truncated")


def describe(demonstrations: Demonstrations) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and the arrays, every episode behind the one before; see :mod:`rlexp.demonstrations.npz_file`.

    :raises ValueError: when an episode does not fit the spaces or is not complete
    """
    mismatch = demonstrations.mismatch()
    if mismatch:
        raise ValueError(mismatch)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "observation_space": space_to_json(demonstrations.observation_space),
        "action_space": space_to_json(demonstrations.action_space),
        "provenance": demonstrations.provenance,
    }
    arrays = to_arrays(demonstrations)
    return {**header, "checksum": checksum(header, arrays)}, arrays


def check(header: Any, path: Path) -> None:
    """Reject what is no header of demonstrations, or one of another version.

    :raises UsageError: naming the file
    """
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise UsageError(f"{path}: not a file of demonstrations; rlexp demos records one")
    if header.get("version") != VERSION:
        raise UsageError(
            f"{path}: demonstrations of format version {header.get('version')}, this rlexp reads {VERSION}"
        )


def is_bound(header: dict[str, Any], arrays: dict[str, Array]) -> bool:
    """Return whether the checksum of a header fits itself and the content."""
    return bool(header.get("checksum") == checksum(header, arrays))


def checksum(header: dict[str, Any], arrays: dict[str, Array]) -> str:
    """SHA-256 over the header and every array's name, kind, shape and content."""
    described = {key: value for key, value in header.items() if key != "checksum"}
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"\n{name} {array.dtype.str} {arrays[name].shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def to_arrays(demonstrations: Demonstrations) -> dict[str, Array]:
    """Return arrays in which every episode stands behind the one before."""
    episodes, space = demonstrations.episodes, demonstrations.observation_space
    arrays: dict[str, Array] = {
        "lengths": np.array([len(episode) for episode in episodes], np.int64),
        "actions": np.concatenate([episode.actions for episode in episodes]),
        "rewards": np.concatenate([episode.rewards for episode in episodes]),
        "terminated": np.array([episode.terminated for episode in episodes], np.bool_),
        "truncated": np.array([episode.truncated for episode in episodes], np.bool_),
    }
    for name, key in observation_parts(space).items():
        arrays[name] = np.concatenate([part_of(episode.observations, key) for episode in episodes])
    return arrays


def to_episodes(arrays: dict[str, Array], space: spaces.Space[Any]) -> tuple[Episode, ...]:
    """Return the episodes that stand behind one another in arrays.

    :param space: of the observations
    :raises ValueError: when the arrays do not fit one another
    """
    parts = observation_parts(space)
    expected = {*parts, *_SEPARATE}
    if set(arrays) != expected:
        raise ValueError(f"members {', '.join(sorted(set(arrays) ^ expected))} missing or too many")
    lengths = arrays["lengths"]
    n, total = len(lengths), int(lengths.sum())
    if lengths.ndim != 1 or n == 0 or lengths.dtype != np.int64 or lengths.min() < 1:
        raise ValueError("lengths are no positive numbers")
    for name, wanted in (
        ("actions", total),
        ("rewards", total),
        ("terminated", n),
        ("truncated", n),
        *((name, total + n) for name in parts),
    ):
        if arrays[name].ndim < 1 or len(arrays[name]) != wanted:
            raise ValueError(f"{name} are {arrays[name].shape}, {wanted} were announced")
    ends = np.cumsum(lengths)
    episodes = []
    for number, (end, length) in enumerate(zip(ends.tolist(), lengths.tolist(), strict=True)):
        begin = end - length
        seen = slice(begin + number, end + number + 1)
        observations: dict[str | None, Array] = {key: arrays[name][seen] for name, key in parts.items()}
        episodes.append(
            Episode(
                observations[None]
                if None in observations
                else {str(key): part for key, part in observations.items()},
                arrays["actions"][begin:end],
                arrays["rewards"][begin:end],
                bool(arrays["terminated"][number]),
                bool(arrays["truncated"][number]),
            )
        )
    return tuple(episodes)
