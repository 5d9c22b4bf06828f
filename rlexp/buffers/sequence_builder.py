"""Overlapping sequences of fixed length from the steps of several environments; without torch.

A sequence has ``length`` steps to learn from and, where the episode has them, the ``burn_in`` steps before. The first
sequence begins with the episode, each further one ``period`` steps after the previous one, the last one ends with the
episode. No sequence crosses the end of an episode (Kapturowski et al. 2019, section 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from rlexp.demonstrations.dataset import Episode
from rlexp.errors import UsageError

Array = npt.NDArray[Any]
Observations = Array | dict[str, Array]

_STORED_NAMES = {"has_burn_in": "burnt"}  # in checkpoints


@dataclass(frozen=True)
class SequenceLayout:
    """How episodes are cut into sequences.

    With a period of at least ``burn_in`` a sequence either begins with its episode, where the recurrent state is zero,
    or has a complete burn-in.

    :param burn_in: steps that only refresh the recurrent state
    :param length: steps to learn from
    :param period: steps between the beginnings of two sequences
    :raises UsageError: when they contradict one another
    """

    burn_in: int
    length: int
    period: int

    def __post_init__(self) -> None:
        if self.length < 1 or self.burn_in < 0:
            raise UsageError(
                f"sequence_length, burn_in: {self.length}, {self.burn_in} given, must be at least 1, 0"
            )
        least = max(1, self.burn_in)
        if not least <= self.period <= self.length:
            raise UsageError(
                f"sequence_period: {self.period} given, must be at least burn_in = {least} and at most "
                f"sequence_length = {self.length}"
            )

    @property
    def n_observations(self) -> int:
        """Observations of a sequence: burn-in, steps to learn from, and the one after the last step."""
        return self.burn_in + self.length + 1


class Sequences(NamedTuple):
    """n sequences as arrays. Index ``burn_in + t`` is what is known before step t.

    Time steps before the beginning or after the end of the episode are zero.
    """

    observations: Observations
    """``(n, n_observations, ...)``, or one such array per key."""
    last_actions: npt.NDArray[np.int64]
    """``(n, n_observations)``: the action before the observation; ``n_actions`` where there is none."""
    last_rewards: npt.NDArray[np.float32]
    """``(n, n_observations)``: the reward that came with the observation."""
    lengths: npt.NDArray[np.int64]
    """``(n,)``: number of valid steps, from 1 to ``length``."""
    terminated: npt.NDArray[np.bool_]
    """``(n,)``: whether the last of them reached a true terminal, not a time limit."""
    has_burn_in: npt.NDArray[np.bool_]
    """``(n,)``: whether there is a burn-in; else the sequence begins with its episode."""
    states: npt.NDArray[np.float32]
    """``(n, state_size)``: the recurrent state before the first valid observation."""

    def __len__(self) -> int:
        return len(self.lengths)


class SequenceBuilder:
    """Collects the steps of environments and returns sequences when they are complete.

    :param n_envs: environments stepped together
    :param layout: how episodes are cut
    :param observation_space: of one environment
    :param n_actions: number of actions
    :param state_size: size of a recurrent state; 0: none
    """

    def __init__(
        self,
        n_envs: int,
        layout: SequenceLayout,
        observation_space: spaces.Space[Any],
        n_actions: int,
        state_size: int,
    ) -> None:
        self.n_envs = n_envs
        self.layout = layout
        self.n_actions = n_actions
        self._open = empty_sequences(n_envs, layout, observation_space, n_actions, 0)
        self._states = np.zeros((n_envs, layout.n_observations, state_size), np.float32)
        self._filled = np.zeros(n_envs, np.int64)

    def begin(self, env: int, observations: Observations) -> None:
        """Begin an episode.

        :param env: index of the environment; its unfinished sequences are dropped
        :param observations: of all environments, ``(n_envs, ...)``
        """
        burn_in = self.layout.burn_in
        self._open.has_burn_in[env] = False
        self._open.last_actions[env, burn_in] = self.n_actions
        self._open.last_rewards[env, burn_in] = 0.0
        _write(self._open.observations, env, burn_in, observations)
        self._filled[env] = burn_in + 1

    def step(
        self,
        states: npt.NDArray[np.float32],
        actions: Array,
        rewards: Array,
        observations: Observations,
        dones: npt.NDArray[np.bool_],
        terminated: npt.NDArray[np.bool_],
    ) -> Sequences | None:
        """Add one step of every environment.

        After the end of an episode :meth:`begin` must be called before the next step.

        :param states: recurrent state with which each action was chosen, ``(n_envs, state_size)``
        :param actions: ``(n_envs,)``
        :param rewards: ``(n_envs,)``
        :param observations: after the action, the last one of an episode that ended, ``(n_envs, ...)``
        :param dones: whether the episode ended, by a terminal or a time limit, ``(n_envs,)``
        :param terminated: whether it reached a terminal, ``(n_envs,)``
        :return: the sequences that became complete; None: none did
        """
        finished = []
        layout = self.layout
        for env in range(self.n_envs):
            row = int(self._filled[env])
            self._states[env, row - 1] = states[env]
            self._open.last_actions[env, row] = actions[env]
            self._open.last_rewards[env, row] = rewards[env]
            _write(self._open.observations, env, row, observations)
            self._filled[env] = row + 1
            steps = row - layout.burn_in
            if steps == layout.length or dones[env]:
                finished.append(self._cut(env, steps, bool(terminated[env])))
            if steps == layout.length and not dones[env]:
                self._begin_next(env)
        return join(finished) if finished else None

    def _cut(self, env: int, steps: int, terminated: bool) -> Sequences:
        burn_in, filled = self.layout.burn_in, int(self._filled[env])
        has_burn_in = bool(self._open.has_burn_in[env])
        first = 0 if has_burn_in else burn_in

        def valid(array: Array, padding: int = 0) -> Array:
            found = np.full_like(array[env : env + 1], padding)
            found[:, first:filled] = array[env : env + 1, first:filled]
            return found

        stored = self._open.observations
        return Sequences(
            {key: valid(part) for key, part in stored.items()} if isinstance(stored, dict) else valid(stored),
            valid(self._open.last_actions, self.n_actions),
            valid(self._open.last_rewards),
            np.array([steps]),
            np.array([terminated]),
            np.array([has_burn_in]),
            self._states[env : env + 1, first].copy(),
        )

    def _begin_next(self, env: int) -> None:
        """Shift the steps, so that the next sequence of the episode is the open one."""
        period, filled = self.layout.period, int(self._filled[env])
        for array in (*_parts(self._open.observations), self._open.last_actions, self._open.last_rewards):
            array[env, : filled - period] = array[env, period:filled].copy()
        self._states[env, : filled - period] = self._states[env, period:filled].copy()
        self._open.has_burn_in[env] = self.layout.burn_in > 0
        self._filled[env] = filled - period

    def state(self) -> dict[str, Any]:
        """Return the unfinished sequences as arrays."""
        return {
            **{name: getattr(self._open, name) for name in ("last_actions", "last_rewards")},
            "burnt": self._open.has_burn_in,
            "observations": list(_parts(self._open.observations)),
            "states": self._states,
            "filled": self._filled,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        for name in ("last_actions", "last_rewards"):
            getattr(self._open, name)[...] = state[name]
        self._open.has_burn_in[...] = state["burnt"]
        for mine, saved in zip(_parts(self._open.observations), state["observations"], strict=True):
            mine[...] = saved
        self._states[...] = state["states"]
        self._filled[...] = state["filled"]


def empty_sequences(
    n: int, layout: SequenceLayout, observation_space: spaces.Space[Any], n_actions: int, state_size: int
) -> Sequences:
    """Allocate n sequences; the system provides the memory only when it is written to.

    :param n: number of sequences
    :param layout: how episodes are cut
    :param observation_space: of one environment
    :param n_actions: number of actions
    :param state_size: size of a recurrent state; 0: none
    """
    length = layout.n_observations

    def allocate(space: spaces.Space[Any]) -> Array:
        dtype = np.float32 if space.dtype == np.float64 else space.dtype
        return np.zeros((n, length, *(space.shape or ())), dtype)

    observations: Observations = (
        {key: allocate(part) for key, part in observation_space.spaces.items()}
        if isinstance(observation_space, spaces.Dict)
        else allocate(observation_space)
    )
    return Sequences(
        observations,
        np.full((n, length), n_actions, np.int64),
        np.zeros((n, length), np.float32),
        np.ones(n, np.int64),
        np.zeros(n, np.bool_),
        np.zeros(n, np.bool_),
        np.zeros((n, state_size), np.float32),
    )


def join(parts: list[Sequences]) -> Sequences:
    """Concatenate sequences."""
    if len(parts) == 1:
        return parts[0]
    columns: list[Any] = []
    for fields in zip(*parts, strict=True):
        if isinstance(fields[0], dict):
            columns.append({key: np.concatenate([part[key] for part in fields]) for key in fields[0]})
        else:
            columns.append(np.concatenate(fields))
    return Sequences(*columns)


def take(sequences: Sequences, indices: npt.NDArray[np.int64]) -> Sequences:
    """Return copies of some sequences.

    :param sequences: n of them
    :param indices: ``(k,)``, each from 0 to n - 1
    """
    columns: list[Any] = []
    for part in sequences:
        if isinstance(part, dict):
            columns.append({key: array.take(indices, axis=0) for key, array in part.items()})
        else:
            columns.append(part.take(indices, axis=0))
    return Sequences(*columns)


def arrays_of(sequences: Sequences) -> dict[str, Array]:
    """Return all arrays by the names that checkpoints use, those of Dict observations as ``observations.<key>``."""
    arrays: dict[str, Array] = {}
    for field, part in zip(Sequences._fields, sequences, strict=True):
        name = _STORED_NAMES.get(field, field)
        if isinstance(part, dict):
            arrays |= {f"{name}.{key}": array for key, array in part.items()}
        else:
            arrays[name] = part
    return arrays


def cut_episodes(
    episodes: tuple[Episode, ...],
    layout: SequenceLayout,
    observation_space: spaces.Space[Any],
    n_actions: int,
    state_size: int,
) -> Sequences:
    """Cut complete episodes. Recurrent states are zero: those of another policy mean nothing to the network.

    :param episodes: at least one
    :param layout: how they are cut
    :param observation_space: of the environment
    :param n_actions: number of actions
    :param state_size: size of a recurrent state; 0: none
    """
    builder = SequenceBuilder(1, layout, observation_space, n_actions, state_size)
    state = np.zeros((1, state_size), np.float32)
    found: list[Sequences] = []
    for episode in episodes:
        builder.begin(0, _time_step(episode.observations, 0))
        for t, action in enumerate(episode.actions):
            done = t + 1 == len(episode.actions)
            after = _time_step(episode.observations, t + 1)
            ends, dies = np.array([done]), np.array([done and episode.terminated])
            complete = builder.step(state, np.array([action]), episode.rewards[t : t + 1], after, ends, dies)
            if complete is not None:
                found.append(complete)
    return join(found)


def _time_step(observations: Observations, t: int) -> Observations:
    if isinstance(observations, dict):
        return {key: part[t : t + 1] for key, part in observations.items()}
    return observations[t : t + 1]


def _parts(observations: Observations) -> tuple[Array, ...]:
    return tuple(observations.values()) if isinstance(observations, dict) else (observations,)


def _write(target: Observations, env: int, step: int, observations: Observations) -> None:
    if isinstance(target, dict):
        assert isinstance(observations, dict)
        for key, array in target.items():
            array[env, step] = observations[key][env]
    else:
        assert not isinstance(observations, dict)
        target[env, step] = observations[env]
