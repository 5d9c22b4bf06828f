"""Segments of trajectories: the one that was just walked, and the memory of the latest ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_obs_shape

Array = npt.NDArray[Any]

_STEP_FIELDS = ("actions", "rewards", "ends", "behaviour")
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


class SegmentStore:
    """A ring of segments of equal length, each of one environment.

    States at time limits are rare, so they are kept beside the ring and not in an array of its length.

    :param capacity: number of segments
    :param n_steps: T
    :param statistics: S, length of what describes the behaviour in a state
    """

    def __init__(
        self,
        capacity: int,
        n_steps: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        statistics: int,
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

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, other: SegmentStore) -> None:
        """Append every segment of another store of the same shapes."""
        places = (self.added + np.arange(len(other))) % self.capacity
        if len(self) == self.capacity and self.limits:
            overwritten = set(places.tolist())
            self.limits = {key: value for key, value in self.limits.items() if key[1] not in overwritten}
        for name in ("observations", *_STEP_FIELDS):
            getattr(self, name)[:, places] = getattr(other, name)[:, : len(other)]
        for (step, segment), observation in other.limits.items():
            self.limits[step, int(places[segment])] = observation
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

        found = list(self._limits_of(places)) if self.limits else []
        limits = [observation for _, _, observation in found]
        at = np.array([(step, column) for step, column, _ in found], np.int64).reshape(-1, 2).T
        shape = self.observations.shape[2:]
        return Segments(
            tensor(self.observations[:, places]),
            tensor(self.actions[:, places]),
            tensor(self.rewards[:, places]),
            tensor(self.ends[:, places]),
            tensor(self.behaviour[:, places]),
            tensor(np.array(limits, self.observations.dtype).reshape(-1, *shape)),
            tensor(at),
        )

    def _limits_of(self, places: Array) -> Iterable[tuple[int, int, Array]]:
        for step, column in np.argwhere(self.ends[:, places] == TRUNCATED).tolist():
            yield step, column, self.limits[step, int(places[column])]

    def state(self) -> dict[str, Any]:
        """Return what is kept, as arrays; no copy."""
        kept = len(self)
        keys = sorted(self.limits)
        state: dict[str, Any] = {
            name: getattr(self, name)[:, :kept] for name in ("observations", *_STEP_FIELDS)
        }
        state["added"] = self.added
        state["limit_places"] = np.array(keys, np.int64).reshape(-1, 2)
        state["limit_observations"] = np.array(
            [self.limits[key] for key in keys], self.observations.dtype
        ).reshape(-1, *self.observations.shape[2:])
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a :meth:`state` of a store of the same capacity and shapes.

        :raises ValueError: when the shapes differ
        """
        kept = min(int(state["added"]), self.capacity)
        for name in ("observations", *_STEP_FIELDS):
            if state[name].shape != getattr(self, name)[:, :kept].shape:
                raise ValueError(f"{name}: shape {state[name].shape} does not fit this memory")
        for name in ("observations", *_STEP_FIELDS):
            getattr(self, name)[:, :kept] = state[name]
        self.added = int(state["added"])
        self.limits = {
            (int(step), int(segment)): observation
            for (step, segment), observation in zip(
                state["limit_places"], state["limit_observations"], strict=True
            )
        }
