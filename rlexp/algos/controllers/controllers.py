"""Reference policies: an environment's own controller, and random actions."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces


class RandomPolicy:
    """Uniform over the enabled actions.

    :param policy: not used; accepted so that all algorithms are built with the same arguments
    :param env: a vectorised environment; only its spaces are used
    :param seed: of the random actions
    """

    def __init__(self, policy: str, env: Any, seed: int | None = None, **_: Any) -> None:
        self.observation_space: spaces.Space[Any] = env.observation_space
        self.action_space: spaces.Space[Any] = env.action_space
        self.seed = seed
        self.num_timesteps = 0

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: np.ndarray[Any, Any] | None = None,
    ) -> tuple[np.ndarray[Any, Any], Any]:
        """Sample one action per environment from NumPy's global generator, which the evaluation seeds.

        :param observation: ``(n_envs, ...)``, or a dictionary of such arrays
        :param action_masks: ``(n_envs, n_actions)`` of bool; True where an action may be taken
        :return: actions ``(n_envs, ...)`` and the unchanged state
        """
        first = next(iter(observation.values())) if isinstance(observation, dict) else observation
        n_envs = len(first)
        if isinstance(self.action_space, spaces.Discrete):
            n_actions = int(self.action_space.n)
            allowed = np.ones((n_envs, n_actions), bool) if action_masks is None else np.asarray(action_masks)
            draws = np.where(allowed, np.random.random((n_envs, n_actions)), -1.0)
            return draws.argmax(axis=1) + int(self.action_space.start), state
        if isinstance(self.action_space, spaces.Box):
            shape = (n_envs, *self.action_space.shape)
            low, high = self.action_space.low, self.action_space.high
            return np.random.uniform(low, high, shape).astype(self.action_space.dtype), state
        self.action_space.seed(int(np.random.randint(2**31)))
        return np.stack([self.action_space.sample() for _ in range(n_envs)]), state


class Controller(RandomPolicy):
    """Placeholder for an environment's own controller: a wrapper makes it act for itself, whatever is predicted."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: np.ndarray[Any, Any] | None = None,
    ) -> tuple[np.ndarray[Any, Any], Any]:
        """Return placeholders, ``(n_envs,)``; see :class:`rlexp.envs.common.wrappers.Controlled`."""
        first = next(iter(observation.values())) if isinstance(observation, dict) else observation
        return np.zeros(len(first), dtype=np.int64), state
