"""Overlapping sequences of fixed length out of the steps of several environments; without torch.

A sequence is a window of ``length`` steps to learn from and, where the episode has them, the ``burn_in`` steps before
it. The first window begins with the episode, each further one ``period`` steps after the one before, the last one ends
with the episode. No window reaches into another episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from rlexp.buffers.demonstrations import Episode
from rlexp.errors import UsageError

Array = npt.NDArray[Any]
Observations = Array | dict[str, Array]


@dataclass(frozen=True)
class Window:
    """How episodes are cut.

    A period of at least ``burn_in`` means that a window either begins with its episode, where the recurrent state is
    known to be zero, or has a whole burn-in before it.

    :param burn_in: steps that only refresh the recurrent state
    :param length: steps to learn from
    :param period: steps between the beginnings of two windows
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
                f"period: {self.period} given, must be at least burn_in = {least} and at most sequence_length = "
                f"{self.length}"
            )

    @property
    def rows(self) -> int:
        """Observations of a sequence: burn-in, steps to learn from, and the one after the last."""
        return self.burn_in + self.length + 1


class Sequences(NamedTuple):
    """n sequences as arrays. Row ``burn_in + t`` is what is known before step t of the window.

    What stands in a row that is not there (before the episode, or after it) is zero.
    """

    observations: Observations
    """``(n, rows, ...)``, or one such array per key."""
    last_actions: npt.NDArray[np.int64]
    """``(n, rows)``: the action that led to the row's observation; ``n_actions`` where there is none."""
    last_rewards: npt.NDArray[np.float32]
    """``(n, rows)``: the reward that came with it."""
    lengths: npt.NDArray[np.int64]
    """``(n,)``: steps of the window that happened, from 1 to ``length``."""
    terminated: npt.NDArray[np.bool_]
    """``(n,)``: whether the episode came to its own end with the last of them; a time limit is none."""
    burnt: npt.NDArray[np.bool_]
    """``(n,)``: whether there is a burn-in; else the window begins with its episode."""
    states: npt.NDArray[np.float32]
    """``(n, state_size)``: the recurrent state before the first row that is there."""

    def __len__(self) -> int:
        return len(self.lengths)


class SequenceBuilder:
    """Collects the steps of environments and hands out sequences as they are complete.

    :param n_envs: environments stepped together
    :param window: how episodes are cut
    :param observation_space: of one environment
    :param n_actions: number of actions
    :param state_size: numbers of a recurrent state; 0: none
    """

    def __init__(
        self,
        n_envs: int,
        window: Window,
        observation_space: spaces.Space[Any],
        n_actions: int,
        state_size: int,
    ) -> None:
        self.n_envs = n_envs
        self.window = window
        self.n_actions = n_actions
        self._open = empty_sequences(n_envs, window, observation_space, n_actions, 0)
        self._states = np.zeros((n_envs, window.rows, state_size), np.float32)
        self._filled = np.zeros(n_envs, np.int64)

    def begin(self, env: int, observations: Observations) -> None:
        """Begin an episode.

        :param env: in which environment; what it had not finished is forgotten
        :param observations: of all environments, ``(n_envs, ...)``
        """
        burn_in = self.window.burn_in
        self._open.burnt[env] = False
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
        """Take one step of every environment.

        An environment that is done must :meth:`begin` before the next step.

        :param states: recurrent state with which each action was chosen, ``(n_envs, state_size)``
        :param actions: ``(n_envs,)``
        :param rewards: ``(n_envs,)``
        :param observations: what came after the action, also where the episode ended, ``(n_envs, ...)``
        :param dones: whether the episode ended for whatever reason
        :param terminated: whether it came to its own end
        :return: what became complete; None: nothing
        """
        finished = []
        window = self.window
        for env in range(self.n_envs):
            row = int(self._filled[env])
            self._states[env, row - 1] = states[env]
            self._open.last_actions[env, row] = actions[env]
            self._open.last_rewards[env, row] = rewards[env]
            _write(self._open.observations, env, row, observations)
            self._filled[env] = row + 1
            steps = row - window.burn_in
            if steps == window.length or dones[env]:
                finished.append(self._cut(env, steps, bool(terminated[env])))
            if steps == window.length and not dones[env]:
                self._move_on(env)
        return join(finished) if finished else None

    def _cut(self, env: int, steps: int, terminated: bool) -> Sequences:
        burn_in, filled = self.window.burn_in, int(self._filled[env])
        burnt = bool(self._open.burnt[env])
        first = 0 if burnt else burn_in

        def there(array: Array, nothing: int = 0) -> Array:
            found = np.full_like(array[env : env + 1], nothing)
            found[:, first:filled] = array[env : env + 1, first:filled]
            return found

        stored = self._open.observations
        return Sequences(
            {key: there(part) for key, part in stored.items()} if isinstance(stored, dict) else there(stored),
            there(self._open.last_actions, self.n_actions),
            there(self._open.last_rewards),
            np.array([steps]),
            np.array([terminated]),
            np.array([burnt]),
            self._states[env : env + 1, first].copy(),
        )

    def _move_on(self, env: int) -> None:
        """Let the next window of the episode be the open one."""
        period, filled = self.window.period, int(self._filled[env])
        for array in (*_parts(self._open.observations), self._open.last_actions, self._open.last_rewards):
            array[env, : filled - period] = array[env, period:filled].copy()
        self._states[env, : filled - period] = self._states[env, period:filled].copy()
        self._open.burnt[env] = self.window.burn_in > 0
        self._filled[env] = filled - period

    def state(self) -> dict[str, Any]:
        """Return the unfinished windows, as arrays."""
        return {
            **{name: getattr(self._open, name) for name in ("last_actions", "last_rewards", "burnt")},
            "observations": list(_parts(self._open.observations)),
            "states": self._states,
            "filled": self._filled,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back a state."""
        for name in ("last_actions", "last_rewards", "burnt"):
            getattr(self._open, name)[...] = state[name]
        for mine, saved in zip(_parts(self._open.observations), state["observations"], strict=True):
            mine[...] = saved
        self._states[...] = state["states"]
        self._filled[...] = state["filled"]


def empty_sequences(
    n: int, window: Window, observation_space: spaces.Space[Any], n_actions: int, state_size: int
) -> Sequences:
    """Return room for n sequences; memory is taken only as it is written to."""
    rows = window.rows

    def room(space: spaces.Space[Any]) -> Array:
        dtype = np.float32 if space.dtype == np.float64 else space.dtype
        return np.zeros((n, rows, *(space.shape or ())), dtype)

    observations: Observations = (
        {key: room(part) for key, part in observation_space.spaces.items()}
        if isinstance(observation_space, spaces.Dict)
        else room(observation_space)
    )
    return Sequences(
        observations,
        np.full((n, rows), n_actions, np.int64),
        np.zeros((n, rows), np.float32),
        np.ones(n, np.int64),
        np.zeros(n, np.bool_),
        np.zeros(n, np.bool_),
        np.zeros((n, state_size), np.float32),
    )


def join(parts: list[Sequences]) -> Sequences:
    """Return sequences one behind the other."""
    if len(parts) == 1:
        return parts[0]
    columns: list[Any] = []
    for fields in zip(*parts, strict=True):
        if isinstance(fields[0], dict):
            columns.append({key: np.concatenate([part[key] for part in fields]) for key in fields[0]})
        else:
            columns.append(np.concatenate(fields))
    return Sequences(*columns)


def take(sequences: Sequences, places: npt.NDArray[np.int64]) -> Sequences:
    """Return copies of some sequences, ``(len(places), ...)``."""
    columns: list[Any] = []
    for part in sequences:
        if isinstance(part, dict):
            columns.append({key: array.take(places, axis=0) for key, array in part.items()})
        else:
            columns.append(part.take(places, axis=0))
    return Sequences(*columns)


def arrays_of(sequences: Sequences) -> dict[str, Array]:
    """Return all arrays by name, those of a dictionary of observations as ``observations.<key>``."""
    arrays: dict[str, Array] = {}
    for name, part in zip(Sequences._fields, sequences, strict=True):
        if isinstance(part, dict):
            arrays |= {f"{name}.{key}": array for key, array in part.items()}
        else:
            arrays[name] = part
    return arrays


def cut_episodes(
    episodes: tuple[Episode, ...],
    window: Window,
    observation_space: spaces.Space[Any],
    n_actions: int,
    state_size: int,
) -> Sequences:
    """Cut whole episodes. Recurrent states are zero: those of whoever played mean nothing to another network.

    :param episodes: at least one
    """
    builder = SequenceBuilder(1, window, observation_space, n_actions, state_size)
    state = np.zeros((1, state_size), np.float32)
    found: list[Sequences] = []
    for episode in episodes:
        builder.begin(0, _row(episode.observations, 0))
        for t, action in enumerate(episode.actions):
            done = t + 1 == len(episode.actions)
            after = _row(episode.observations, t + 1)
            ends, dies = np.array([done]), np.array([done and episode.terminated])
            complete = builder.step(state, np.array([action]), episode.rewards[t : t + 1], after, ends, dies)
            if complete is not None:
                found.append(complete)
    return join(found)


def _row(observations: Observations, t: int) -> Observations:
    if isinstance(observations, dict):
        return {key: part[t : t + 1] for key, part in observations.items()}
    return observations[t : t + 1]


def _parts(observations: Observations) -> tuple[Array, ...]:
    return tuple(observations.values()) if isinstance(observations, dict) else (observations,)


def _write(room: Observations, env: int, row: int, observations: Observations) -> None:
    if isinstance(room, dict):
        assert isinstance(observations, dict)
        for key, array in room.items():
            array[env, row] = observations[key][env]
    else:
        assert not isinstance(observations, dict)
        room[env, row] = observations[env]
