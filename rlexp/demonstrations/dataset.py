"""Demonstrations: complete episodes of an expert, and what makes an episode complete."""

from __future__ import annotations

import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from rlexp.demonstrations.space_serialization import describe_space
from rlexp.errors import UsageError

Array = npt.NDArray[Any]
Observations = Array | dict[str, Array]

# What reading a damaged file or its header may raise.
DAMAGE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,  # of gymnasium 1.0, about a space that cannot be
    EOFError,
    RuntimeError,
    OverflowError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
)


@dataclass(frozen=True)
class Episode:
    """One complete episode of T actions.

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

    :param episodes: complete ones
    :param observation_space: of the environment they were recorded in
    :param action_space: likewise
    :param provenance: JSON values; ``rlexp demos`` writes ``task``, ``env`` (its config), ``expert``, ``seed``,
        ``episode_seeds``, ``return_mean``, ``success_rate``, ``versions`` and more; of a Minari dataset that somebody
        else has made: ``dataset``, ``env_id``, ``expert``, ``episodes`` and ``steps``
    :param checksum: of spaces, provenance and content, as ``rlexp demos`` has written it; None when it has not
    :param env_spec: gymnasium's description of the environment, as JSON, for a Minari dataset; nobody here executes it
    """

    episodes: tuple[Episode, ...]
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    provenance: dict[str, Any]
    checksum: str | None = None
    env_spec: str | None = None

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

    def mismatch(self) -> str | None:
        """Return why these are not complete episodes of an environment with these spaces; None if they are."""
        if not self.episodes:
            return "there are no episodes"
        for number, episode in enumerate(self.episodes):
            mismatch = _mismatch(episode, self.observation_space, self.action_space)
            if mismatch:
                return f"episode {number}: {mismatch}"
        return None


def observation_parts(space: spaces.Space[Any]) -> dict[str, str | None]:
    """Return the name in a file for every part of an observation; the key None stands for the whole."""
    if isinstance(space, spaces.Dict):
        return {f"observations.{key}": key for key in space.spaces}
    return {"observations": None}


def part_of(observations: Observations, key: str | None) -> Array:
    """Return one part of observations, as :func:`observation_parts` names it."""
    if key is None:
        assert isinstance(observations, np.ndarray)
        return observations
    assert isinstance(observations, dict)
    return observations[key]


def _mismatch(
    episode: Episode, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
) -> str | None:
    length = len(episode.actions)
    if length == 0:
        return "there are no actions"
    if not (episode.terminated or episode.truncated):
        return "it has no end"
    if episode.rewards.shape != (length,) or episode.rewards.dtype != np.float32:
        return f"rewards are {episode.rewards.dtype} {episode.rewards.shape}, float32 {(length,)} are needed"
    if not np.isfinite(episode.rewards).all():
        return "a reward is not finite"
    outside = _outside(episode.actions, action_space)
    if outside:
        return f"actions {outside}"
    if isinstance(observation_space, spaces.Dict) != isinstance(episode.observations, dict):
        return f"observations are not those of {describe_space(observation_space)}"
    if isinstance(observation_space, spaces.Dict) and set(episode.observations) != set(observation_space):
        return f"observations without the keys of {describe_space(observation_space)}"
    for key in observation_parts(observation_space).values():
        part = part_of(episode.observations, key)
        if len(part) != length + 1:
            return f"{len(part)} observations for {length} actions"
        outside = _outside(part, observation_space if key is None else observation_space[key])  # type: ignore[index]
        if outside:
            return f"observations {'' if key is None else key + ' '}{outside}"
    return None


def _outside(rows: Array, space: spaces.Space[Any]) -> str | None:
    """Say why some row is no element of a space, judged for all rows at once."""
    if rows.dtype == space.dtype and rows.shape[1:] == (space.shape or ()):
        if rows.dtype.kind == "f" and not np.isfinite(rows).all():
            return "that are not finite"
        if _within(rows, space):
            return None
    return f"outside {describe_space(space)}"


def _within(rows: Array, space: spaces.Space[Any]) -> bool:
    if isinstance(space, spaces.Box):
        return bool(np.all(rows >= space.low) and np.all(rows <= space.high))
    if isinstance(space, spaces.Discrete):
        return bool(np.all(rows >= space.start) and np.all(rows < space.start + space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return bool(np.all(rows >= space.start) and np.all(rows < space.start + space.nvec))
    return bool(np.all((rows == 0) | (rows == 1)))
