"""Segments of trajectories: the current rollout, and a replay buffer of the latest ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_obs_shape

Array = npt.NDArray[Any]

RUNNING, TERMINATED, TRUNCATED = range(3)
"""How a step left its episode."""

_STORED_NAMES = {"lstm_states": "memory"}  # in checkpoints and files of older versions


class Segments(NamedTuple):
    """B segments of T steps as tensors, time-major. An episode may end anywhere inside."""

    observations: th.Tensor
    """``(T + 1, B, *observation)``: the last one is the state after the segment."""
    actions: th.Tensor
    """``(T, B)`` int64, or ``(T, B, d)``."""
    rewards: th.Tensor
    """``(T, B)``."""
    ends: th.Tensor
    """``(T, B)``: :data:`RUNNING`, :data:`TERMINATED` or :data:`TRUNCATED`."""
    behaviour: th.Tensor
    """``(T, B, S)``: log-probabilities of all actions, or mean and log σ, of the policy that acted."""
    truncation_observations: th.Tensor
    """``(K, *observation)``: the last observations of truncated episodes."""
    truncations: th.Tensor
    """``(2, K)`` int64: step and segment of each truncation."""
    masks: th.Tensor | None = None
    """``(T + 1, B, n_actions)`` bool: which actions are allowed in :attr:`observations`; None: all."""
    truncation_masks: th.Tensor | None = None
    """``(K, n_actions)`` bool: which actions are allowed in :attr:`truncation_observations`; None: all."""
    lstm_states: th.Tensor | None = None
    """``(2 * layers, B, hidden)``: LSTM states of the policy that acted, before the first step; None: not recurrent."""

    @property
    def n_transitions(self) -> int:
        """Number of transitions, ``T * B``; as many of :meth:`states` were acted in."""
        return self.rewards.numel()

    def states(self) -> th.Tensor:
        """Return every state whose value is needed, ``((T + 1) * B + K, *observation)``.

        First those that were acted in, then those after the segments, last the truncation observations.
        """
        return _joined(self.observations, self.truncation_observations)

    def allowed(self) -> th.Tensor | None:
        """Return the masks of :meth:`states`, ``((T + 1) * B + K, n_actions)``."""
        if self.masks is None or self.truncation_masks is None:
            return None
        return _joined(self.masks, self.truncation_masks)

    def starts(self) -> th.Tensor:
        """Return, for every step but the first, whether it begins an episode, ``(T, B)`` bool."""
        return self.ends != RUNNING


def _joined(inside: th.Tensor, at_truncations: th.Tensor) -> th.Tensor:
    flat = inside.flatten(0, 1)
    return th.cat([flat, at_truncations]) if len(at_truncations) else flat


class TrajectoryReplayBuffer:
    """A ring of segments of equal length, each of one environment.

    Truncations are rare, so their observations are stored in a dictionary and not in an array of the ring's length.

    :param capacity: number of segments
    :param n_steps: T
    :param observation_space: of one environment
    :param action_space: of one environment
    :param statistics: S, numbers that describe the behaviour policy in a state
    :param masked: whether action masks are stored
    :param lstm_state_shape: of a recurrent policy's state, ``(2 * layers, hidden)``; None: not recurrent
    """

    def __init__(
        self,
        capacity: int,
        n_steps: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        statistics: int,
        masked: bool = False,
        lstm_state_shape: tuple[int, int] | None = None,
    ) -> None:
        self.capacity, self.n_steps = capacity, n_steps
        self.added = 0
        shape = get_obs_shape(observation_space)
        assert isinstance(shape, tuple)
        discrete = isinstance(action_space, spaces.Discrete)
        action_shape = () if discrete else tuple(action_space.shape or ())
        # np.zeros asks the system for memory only when a page is written to.
        self.observations: Array = np.zeros((n_steps + 1, capacity, *shape), observation_space.dtype)
        if self.observations.dtype == np.float64:
            self.observations = self.observations.astype(np.float32)
        action_type = np.int64 if discrete else np.float32
        self.actions: Array = np.zeros((n_steps, capacity, *action_shape), action_type)
        self.rewards: Array = np.zeros((n_steps, capacity), np.float32)
        self.ends: Array = np.zeros((n_steps, capacity), np.uint8)
        self.behaviour: Array = np.zeros((n_steps, capacity, statistics), np.float32)
        self.truncation_observations: dict[tuple[int, int], Array] = {}
        self._fields = ["observations", "actions", "rewards", "ends", "behaviour"]
        self.masked = masked
        if masked:
            self.masks: Array = np.ones((n_steps + 1, capacity, statistics), np.bool_)
            self.truncation_masks: dict[tuple[int, int], Array] = {}
            self._fields.append("masks")
        self.recurrent = lstm_state_shape is not None
        if lstm_state_shape is not None:
            self.lstm_states: Array = np.zeros(
                (lstm_state_shape[0], capacity, lstm_state_shape[1]), np.float32
            )
            self._fields.append("lstm_states")

    @property
    def _at_truncations(self) -> list[dict[tuple[int, int], Array]]:
        return [self.truncation_observations, *([self.truncation_masks] if self.masked else [])]

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def clear(self) -> None:
        """Remove all segments."""
        self.added = 0
        for values in self._at_truncations:
            values.clear()

    def add(self, other: TrajectoryReplayBuffer) -> None:
        """Append every segment of another buffer of the same shapes.

        :param other: the rollout
        """
        indices = (self.added + np.arange(len(other))) % self.capacity
        if len(self) == self.capacity and self.truncation_observations:
            overwritten = set(indices.tolist())
            for values in self._at_truncations:
                for key in [key for key in values if key[1] in overwritten]:
                    del values[key]
        for name in self._fields:
            getattr(self, name)[:, indices] = getattr(other, name)[:, : len(other)]
        for values, added in zip(self._at_truncations, other._at_truncations, strict=True):
            values.update({(step, int(indices[segment])): value for (step, segment), value in added.items()})
        self.added += len(other)

    def sample(self, n_segments: int) -> Array:
        """Sample indices with replacement, from NumPy's global generator as Stable-Baselines3's buffers do.

        :param n_segments: how many
        """
        return np.random.randint(len(self), size=n_segments)

    def get(self, indices: Array, device: th.device) -> Segments:
        """Return segments as tensors.

        :param indices: of B segments, ``(B,)``
        :param device: of the tensors
        """

        def tensor(array: Array) -> th.Tensor:
            return th.as_tensor(array, device=device)

        at = np.empty((0, 2), np.int64)
        if self.truncation_observations:
            at = np.argwhere(self.ends[:, indices] == TRUNCATED)
        keys = [(int(step), int(indices[column])) for step, column in at]
        masks = self.masked
        return Segments(
            tensor(self.observations[:, indices]),
            tensor(self.actions[:, indices]),
            tensor(self.rewards[:, indices]),
            tensor(self.ends[:, indices]),
            tensor(self.behaviour[:, indices]),
            tensor(_stacked(self.truncation_observations, keys, self.observations)),
            tensor(at.T.copy()),
            tensor(self.masks[:, indices]) if masks else None,
            tensor(_stacked(self.truncation_masks, keys, self.masks)) if masks else None,
            tensor(self.lstm_states[:, indices]) if self.recurrent else None,
        )

    def state(self) -> dict[str, Any]:
        """Return the stored segments as arrays; no copy."""
        n_kept = len(self)
        keys = sorted(self.truncation_observations)
        state: dict[str, Any] = {
            _STORED_NAMES.get(name, name): getattr(self, name)[:, :n_kept] for name in self._fields
        }
        state["added"] = self.added
        state["limit_places"] = np.array(keys, np.int64).reshape(-1, 2)
        state["limit_observations"] = _stacked(self.truncation_observations, keys, self.observations)
        if self.masked:
            state["limit_masks"] = _stacked(self.truncation_masks, keys, self.masks)
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a :meth:`state` of a buffer of the same capacity and shapes.

        :param state: what :meth:`state` returned
        :raises ValueError: when the shapes differ
        """
        n_kept = min(int(state["added"]), self.capacity)
        for name in self._fields:
            stored = _STORED_NAMES.get(name, name)
            shape = state[stored].shape if stored in state else None
            if shape != getattr(self, name)[:, :n_kept].shape:
                raise ValueError(f"{stored}: shape {shape} does not fit this replay buffer")
        for name in self._fields:
            getattr(self, name)[:, :n_kept] = state[_STORED_NAMES.get(name, name)]
        self.added = int(state["added"])
        keys = [(int(step), int(segment)) for step, segment in state["limit_places"]]
        self.truncation_observations = dict(zip(keys, state["limit_observations"], strict=True))
        if self.masked:
            self.truncation_masks = dict(zip(keys, state["limit_masks"], strict=True))


def _stacked(values: dict[tuple[int, int], Array], keys: list[tuple[int, int]], like: Array) -> Array:
    """Return the values of some keys as one array, ``(K, *shape of a state's)``."""
    return np.array([values[key] for key in keys], like.dtype).reshape(-1, *like.shape[2:])
