"""Small environments for ACER, and ACER with small settings."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env

from rlexp.algos.acer.acer import ACER
from tests.algos.conftest import Corridor

SMALL: dict[str, Any] = {"n_steps": 10, "batch_size": 4, "learning_starts": 40, "seed": 0, "device": "cpu"}
SMALL_NETS = {"net_arch": [16]}


class Chain(Corridor):
    """Walk right (1) to the end for +3; 'stay' (0) and 'stay, too' (2) only cost; 9 steps are a time limit."""

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.place += int(action == 1)
        arrived = self.place == 5
        reward = 3.0 if arrived else -0.1
        return self._observe(), reward, arrived, not arrived and self.steps == 9, {}


class MaskedChain(Chain):
    """The chain where 'stay, too' is never allowed and 'stay' only in every other place."""

    def action_masks(self) -> np.ndarray:
        return np.array([self.place % 2 == 0, True, False])

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        assert self.action_masks()[action], "what is forbidden is never done"
        return super().step(action)


class Recall(gymnasium.Env[Any, Any]):
    """Say in the third step what was shown in the first; the reward of the two steps before is 0."""

    observation_space = spaces.Box(0, 1, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.shown, self.steps = int(self.np_random.integers(2)), 0
        return np.eye(3, dtype=np.float32)[self.shown], {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        done = self.steps == 3
        return np.eye(3, dtype=np.float32)[2], float(done and action == self.shown), done, False, {}


class Reach(gymnasium.Env[Any, Any]):
    """Move a point on a line to where it should be; two-dimensional actions, a time limit of seven steps."""

    observation_space = spaces.Box(-3, 3, (3,), np.float32)
    action_space = spaces.Box(np.array([-2, 0], np.float32), np.array([2, 1], np.float32))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.state, self.steps = self.np_random.uniform(-1, 1, 3).astype(np.float32), 0
        return self.state, {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        self.steps += 1
        self.state = np.clip(self.state + 0.1 * np.append(action, 0.5), -3, 3).astype(np.float32)
        return self.state, -float(np.square(action - self.state[:2]).sum()), False, self.steps == 7, {}


class Images(gymnasium.Env[Any, Any]):
    observation_space = spaces.Box(0, 255, (36, 36, 1), np.uint8)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self._draw(), {}

    def _draw(self) -> np.ndarray:
        return self.np_random.integers(0, 255, (36, 36, 1), np.uint8)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return self._draw(), float(action), False, self.steps == 4, {}


class Grid(Images):
    observation_space = spaces.Box(0, 1, (4, 10, 10), np.uint8)

    def _draw(self) -> np.ndarray:
        return self.np_random.integers(0, 2, (4, 10, 10), np.uint8)


def make(environment: Any = Chain, n_envs: int = 1, policy: str = "MlpPolicy", **kwargs: Any) -> Any:
    """Build ACER (or another ``kind``) on the chain, or on another environment, small settings by default."""
    kind = kwargs.pop("kind", ACER)
    kwargs = {**SMALL, "policy_kwargs": {**SMALL_NETS, **kwargs.pop("policy_kwargs", {})}, **kwargs}
    return kind(policy, make_vec_env(environment, n_envs, seed=0), **kwargs)
