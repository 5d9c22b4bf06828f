"""Tasks for the agents that remember, small and of known behaviour."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from rlexp.envs.common.episode_replay import EpisodeReplay


class Wander(gymnasium.Env[Any, Any]):
    """Noise; episodes end by themselves or for a time limit, now and then."""

    observation_space: Any = spaces.Box(-10, 10, (3,), np.float32)
    action_space: Any = spaces.Box(-2, 2, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        chance = self.np_random.random()
        return self._look(), float(np.sum(action)), chance < 0.05, 0.05 <= chance < 0.1, {}

    def _look(self) -> Any:
        return self.np_random.normal(size=3).astype(np.float32)


class Recall(gymnasium.Env[Any, Any]):
    """A sign is shown once; repeating it later is worth 1 a step, its opposite -1. Nothing else is ever seen."""

    observation_space: Any = spaces.Box(-1, 1, (2,), np.float32)
    action_space: Any = spaces.Box(-1, 1, (1,), np.float32)
    length = 6

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.sign = float(self.np_random.integers(2) * 2 - 1)
        self.place = 0
        return np.array([self.sign, 0.0], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place += 1
        reward = float(np.clip(action, -1, 1)[0]) * self.sign
        seen = np.array([0.0, self.place / self.length], np.float32)
        return seen, reward, False, self.place == self.length, {}


def vec(kind: type[gymnasium.Env[Any, Any]], n_envs: int = 1) -> DummyVecEnv:
    """Build the training environment as an experiment does."""
    return DummyVecEnv([lambda: EpisodeReplay(Monitor(kind()))] * n_envs)
