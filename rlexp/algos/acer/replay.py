"""Segments of trajectories: the one that was just walked, and the memory of the latest ones."""

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
    limit_observations: th.Tensor
    """``(K, *observation)``: the states at which time limits struck, each before another episode's first."""
    limit_places: th.Tensor
    """``(2, K)`` int64: step and segment of each."""
    masks: th.Tensor | None = None
    """``(T + 1, B, n_actions)`` bool: which actions are allowed in :attr:`observations`; None: all."""
    limit_masks: th.Tensor | None = None
    """``(K, n_actions)`` bool: likewise in :attr:`limit_observations`."""
    memory: th.Tensor | None = None
    """``(2 * layers, B, hidden)``: of the recurrent policy that acted, before the first step; None: it has none."""

    @property
    def acted(self) -> int:
        """Number of states that were acted in, ``T * B``."""
        return self.rewards.numel()

    def states(self) -> th.Tensor:
        """Return every state whose value is needed, ``((T + 1) * B + K, *observation)``.

        First those acted in, then those after the segments, last those at which time limits struck.
        """
        return _joined(self.observations, self.limit_observations)

    def allowed(self) -> th.Tensor | None:
        """Return the masks of :meth:`states`, ``((T + 1) * B + K, n_actions)``."""
        if self.masks is None or self.limit_masks is None:
            return None
        return _joined(self.masks, self.limit_masks)

    def starts(self) -> th.Tensor:
        """Return, for every step but the first, whether it begins an episode, ``(T, B)`` bool."""
        return self.ends != RUNNING


def _joined(inside: th.Tensor, at_limits: th.Tensor) -> th.Tensor:
    flat = inside.flatten(0, 1)
    return th.cat([flat, at_limits]) if len(at_limits) else flat


class SegmentStore:
    """A ring of segments of equal length, each of one environment.

    States at time limits are rare, so they are kept beside the ring and not in an array of its length.

    :param capacity: number of segments
    :param n_steps: T
    :param statistics: S, length of what describes the behaviour in a state
    :param masked: whether it is kept which actions are allowed
    :param memory_shape: of what a recurrent policy remembers, ``(2 * layers, hidden)``
    """

    def __init__(
        self,
        capacity: int,
        n_steps: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        statistics: int,
        masked: bool = False,
        memory_shape: tuple[int, int] | None = None,
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
        self.limits: dict[tuple[int, int], Array] = {}
        self._fields = ["observations", "actions", "rewards", "ends", "behaviour"]
        self.masked = masked
        if masked:
            self.masks: Array = np.ones((n_steps + 1, capacity, statistics), np.bool_)
            self.limit_masks: dict[tuple[int, int], Array] = {}
            self._fields.append("masks")
        self.recurrent = memory_shape is not None
        if memory_shape is not None:
            self.memory: Array = np.zeros((memory_shape[0], capacity, memory_shape[1]), np.float32)
            self._fields.append("memory")

    @property
    def _at_limits(self) -> list[dict[tuple[int, int], Array]]:
        return [self.limits, self.limit_masks] if self.masked else [self.limits]

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def clear(self) -> None:
        """Forget everything."""
        self.added = 0
        for kept in self._at_limits:
            kept.clear()

    def add(self, other: SegmentStore) -> None:
        """Append every segment of another store of the same shapes."""
        places = (self.added + np.arange(len(other))) % self.capacity
        if len(self) == self.capacity and self.limits:
            overwritten = set(places.tolist())
            for kept in self._at_limits:
                for key in [key for key in kept if key[1] in overwritten]:
                    del kept[key]
        for name in self._fields:
            getattr(self, name)[:, places] = getattr(other, name)[:, : len(other)]
        for kept, added in zip(self._at_limits, other._at_limits, strict=True):
            kept.update({(step, int(places[segment])): value for (step, segment), value in added.items()})
        self.added += len(other)

    def sample(self, n_segments: int) -> Array:
        """Draw places with replacement, from NumPy's global generator as Stable-Baselines3's buffers do."""
        return np.random.randint(len(self), size=n_segments)

    def get(self, places: Array, device: th.device) -> Segments:
        """Return segments as tensors.

        :param places: of B segments, ``(B,)``
        """

        def tensor(array: Array) -> th.Tensor:
            return th.as_tensor(array, device=device)

        at = np.argwhere(self.ends[:, places] == TRUNCATED) if self.limits else np.empty((0, 2), np.int64)
        keys = [(int(step), int(places[column])) for step, column in at]
        masks = self.masked
        return Segments(
            tensor(self.observations[:, places]),
            tensor(self.actions[:, places]),
            tensor(self.rewards[:, places]),
            tensor(self.ends[:, places]),
            tensor(self.behaviour[:, places]),
            tensor(_rows(self.limits, keys, self.observations)),
            tensor(at.T.copy()),
            tensor(self.masks[:, places]) if masks else None,
            tensor(_rows(self.limit_masks, keys, self.masks)) if masks else None,
            tensor(self.memory[:, places]) if self.recurrent else None,
        )

    def state(self) -> dict[str, Any]:
        """Return what is kept, as arrays; no copy."""
        kept = len(self)
        keys = sorted(self.limits)
        state: dict[str, Any] = {name: getattr(self, name)[:, :kept] for name in self._fields}
        state["added"] = self.added
        state["limit_places"] = np.array(keys, np.int64).reshape(-1, 2)
        state["limit_observations"] = _rows(self.limits, keys, self.observations)
        if self.masked:
            state["limit_masks"] = _rows(self.limit_masks, keys, self.masks)
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a :meth:`state` of a store of the same capacity and shapes.

        :raises ValueError: when the shapes differ
        """
        kept = min(int(state["added"]), self.capacity)
        for name in self._fields:
            shape = state[name].shape if name in state else None
            if shape != getattr(self, name)[:, :kept].shape:
                raise ValueError(f"{name}: shape {shape} does not fit this memory")
        for name in self._fields:
            getattr(self, name)[:, :kept] = state[name]
        self.added = int(state["added"])
        keys = [(int(step), int(segment)) for step, segment in state["limit_places"]]
        self.limits = dict(zip(keys, state["limit_observations"], strict=True))
        if self.masked:
            self.limit_masks = dict(zip(keys, state["limit_masks"], strict=True))


def _rows(values: dict[tuple[int, int], Array], keys: list[tuple[int, int]], like: Array) -> Array:
    """Return the values of some keys as one array, ``(K, *shape of a state's)``."""
    return np.array([values[key] for key in keys], like.dtype).reshape(-1, *like.shape[2:])
