"""Demonstrations: whole episodes of somebody who can, in one file that says where they come from.

The file is an ``.npz`` archive (``numpy.load`` with ``allow_pickle=False`` reads it) with these members, every episode
behind the one before:

=====================  ============================================================================================
``header``             JSON as bytes: ``format``, ``version``, ``observation_space``, ``action_space``,
                       ``provenance`` (see :class:`Demonstrations`) and ``checksum``, the SHA-256 of everything else
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

import hashlib
import json
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from rlexp.demonstrations.space_serialization import describe_space, space_from_json, space_to_json
from rlexp.errors import UsageError

FORMAT = "rlexp demonstrations"
VERSION = 1

Array = npt.NDArray[Any]
Observations = Array | dict[str, Array]

_SEPARATE = ("header", "lengths", "actions", "rewards", "terminated", "truncated")
_DAMAGE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    RuntimeError,
    OverflowError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class Episode:
    """One whole episode of T actions.

    :param observations: ``(T + 1, ...)``, the last one included, or a dictionary of such arrays
    :param actions: ``(T, ...)``
    :param rewards: ``(T,)`` float32
    :param terminated: the environment ended it
    :param truncated: a time limit ended it
    """

    observations: Observations
    actions: Array
    rewards: npt.NDArray[np.float32]
    terminated: bool
    truncated: bool

    def __len__(self) -> int:
        return len(self.actions)


@dataclass(frozen=True)
class Demonstrations:
    """Episodes, and what must be known of them.

    :param episodes: whole ones
    :param observation_space: of the environment they were recorded in
    :param action_space: likewise
    :param provenance: JSON values; ``rlexp demos`` writes ``task``, ``env`` (its config), ``expert``, ``seed``,
        ``episode_seeds``, ``return_mean``, ``success_rate``, ``versions`` and more
    :param checksum: of the file that they were read from; None when they come from no file
    """

    episodes: tuple[Episode, ...]
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    provenance: dict[str, Any]
    checksum: str | None = None

    def __len__(self) -> int:
        return len(self.episodes)

    @property
    def n_actions(self) -> int:
        """Steps of all episodes together."""
        return sum(len(episode) for episode in self.episodes)

    def require(
        self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any], source: Any
    ) -> None:
        """Check that the spaces are those of an environment.

        :param source: the file, for the message
        :raises UsageError: naming both spaces
        """
        for what, ours, theirs in (
            ("observations", self.observation_space, observation_space),
            ("actions", self.action_space, action_space),
        ):
            if ours != theirs:
                raise UsageError(
                    f"{source}: its {what} are {describe_space(ours)}, the environment's {describe_space(theirs)}"
                )


# --------------------------------------------------------------------------------------------------- files


def write(path: str | os.PathLike[str], demonstrations: Demonstrations) -> None:
    """Write the file so that a kill at any moment leaves the old one, the new one or none.

    :raises ValueError: when an episode does not fit the spaces or is no whole one
    """
    path = Path(path)
    for number, episode in enumerate(demonstrations.episodes):
        problem = _mismatch(episode, demonstrations.observation_space, demonstrations.action_space)
        if problem:
            raise ValueError(f"episode {number}: {problem}")
    arrays = _to_arrays(demonstrations)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "observation_space": space_to_json(demonstrations.observation_space),
        "action_space": space_to_json(demonstrations.action_space),
        "provenance": demonstrations.provenance,
    }
    header["checksum"] = _checksum(header, arrays)
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


def read(path: str | os.PathLike[str]) -> Demonstrations:
    """Read a file.

    :raises UsageError: in one line, when it is missing, cut off, damaged or something else
    """
    path = Path(path)
    header, arrays = _load(path)
    try:
        observation_space = space_from_json(header["observation_space"])
        action_space = space_from_json(header["action_space"])
        episodes = _from_arrays(arrays, observation_space)
        problems = [_mismatch(episode, observation_space, action_space) for episode in episodes]
        provenance = dict(header["provenance"])
    except _DAMAGE as error:
        raise UsageError(
            f"{path}: demonstrations that cannot be understood ({_first_line(error)})"
        ) from error
    for number, problem in enumerate(problems):
        if problem:
            raise UsageError(f"{path}: demonstrations that cannot be used: episode {number}: {problem}")
    return Demonstrations(tuple(episodes), observation_space, action_space, provenance, header["checksum"])


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a file says of itself, without its episodes and without checking them.

    :raises UsageError: as :func:`read`
    """
    return _open(Path(path), everything=False)[0]


def _load(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    header, arrays = _open(path, everything=True)
    if header.get("checksum") != _checksum({key: header[key] for key in header if key != "checksum"}, arrays):
        raise UsageError(f"{path}: damaged demonstrations, the checksum does not fit the content")
    return header, arrays


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
        with np.load(path, allow_pickle=False) as archive:
            if "header" not in archive.files:
                raise UsageError(f"{path}: not a file of demonstrations; rlexp demos records one")
            header = json.loads(archive["header"].tobytes().decode())
            names = [name for name in archive.files if name != "header"] if everything else []
            arrays = {name: np.asarray(archive[name]) for name in names}
    except UsageError:
        raise
    except _DAMAGE as error:
        raise UsageError(
            f"{path}: demonstrations cut off or damaged ({_first_line(error)}); collect them again"
        ) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise UsageError(f"{path}: not a file of demonstrations; rlexp demos records one")
    if header.get("version") != VERSION:
        raise UsageError(
            f"{path}: demonstrations of format version {header.get('version')}, this rlexp reads {VERSION}"
        )
    return header, arrays


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _checksum(header: dict[str, Any], arrays: dict[str, Array]) -> str:
    """SHA-256 over the header and every array's name, kind, shape and content."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"\n{name} {array.dtype.str} {arrays[name].shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


# -------------------------------------------------------------------------------------- episodes and long arrays


def _to_arrays(demonstrations: Demonstrations) -> dict[str, Array]:
    episodes, space = demonstrations.episodes, demonstrations.observation_space
    if not episodes:
        raise ValueError("there are no episodes")
    arrays: dict[str, Array] = {
        "lengths": np.array([len(episode) for episode in episodes], np.int64),
        "actions": np.concatenate([episode.actions for episode in episodes]),
        "rewards": np.concatenate([episode.rewards for episode in episodes]),
        "terminated": np.array([episode.terminated for episode in episodes], np.bool_),
        "truncated": np.array([episode.truncated for episode in episodes], np.bool_),
    }
    for name, key in _observation_members(space).items():
        arrays[name] = np.concatenate([_part(episode.observations, key) for episode in episodes])
    return arrays


def _from_arrays(arrays: dict[str, Array], space: spaces.Space[Any]) -> list[Episode]:
    members = _observation_members(space)
    expected = {*members, *_SEPARATE} - {"header"}
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
        *((name, total + n) for name in members),
    ):
        if arrays[name].ndim < 1 or len(arrays[name]) != wanted:
            raise ValueError(f"{name} are {arrays[name].shape}, {wanted} were announced")
    ends = np.cumsum(lengths)
    episodes = []
    for number, (end, length) in enumerate(zip(ends.tolist(), lengths.tolist(), strict=True)):
        begin = end - length
        seen = slice(begin + number, end + number + 1)
        parts: dict[str | None, Array] = {key: arrays[name][seen] for name, key in members.items()}
        episodes.append(
            Episode(
                parts[None] if None in parts else {str(key): part for key, part in parts.items()},
                arrays["actions"][begin:end],
                arrays["rewards"][begin:end],
                bool(arrays["terminated"][number]),
                bool(arrays["truncated"][number]),
            )
        )
    return episodes


def _observation_members(space: spaces.Space[Any]) -> dict[str, str | None]:
    """Return the archive's member for every part of an observation; the key None stands for the whole."""
    if isinstance(space, spaces.Dict):
        return {f"observations.{key}": key for key in space.spaces}
    return {"observations": None}


def _part(observations: Observations, key: str | None) -> Array:
    if key is None:
        assert isinstance(observations, np.ndarray)
        return observations
    assert isinstance(observations, dict)
    return observations[key]


def _mismatch(
    episode: Episode, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
) -> str | None:
    """Return why an episode is not a complete episode of an environment with these spaces; None if it is."""
    length = len(episode.actions)
    if length == 0:
        return "there are no actions"
    if not (episode.terminated or episode.truncated):
        return "it has no end"
    if episode.rewards.shape != (length,) or episode.rewards.dtype != np.float32:
        return f"rewards are {episode.rewards.dtype} {episode.rewards.shape}, float32 {(length,)} are needed"
    if not np.isfinite(episode.rewards).all():
        return "a reward is not finite"
    if not _inside(episode.actions, action_space):
        return f"actions outside {describe_space(action_space)}"
    if isinstance(observation_space, spaces.Dict) != isinstance(episode.observations, dict):
        return f"observations are not those of {describe_space(observation_space)}"
    if isinstance(observation_space, spaces.Dict) and set(episode.observations) != set(observation_space):
        return f"observations without the keys of {describe_space(observation_space)}"
    for key in _observation_members(observation_space).values():
        part = _part(episode.observations, key)
        subspace = observation_space if key is None else observation_space[key]  # type: ignore[index]
        if len(part) != length + 1:
            return f"{len(part)} observations for {length} actions"
        if not _inside(part, subspace):
            return f"observations {'' if key is None else key + ' '}outside {describe_space(subspace)}"
    return None


def _inside(rows: Array, space: spaces.Space[Any]) -> bool:
    """Whether every row is an element of a space, judged for all rows at once."""
    if rows.dtype != space.dtype or rows.shape[1:] != (space.shape or ()):
        return False
    if isinstance(space, spaces.Box):
        return bool(np.all(rows >= space.low) and np.all(rows <= space.high))
    if isinstance(space, spaces.Discrete):
        return bool(np.all(rows >= space.start) and np.all(rows < space.start + space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return bool(np.all(rows >= space.start) and np.all(rows < space.start + space.nvec))
    return bool(np.all((rows == 0) | (rows == 1)))
