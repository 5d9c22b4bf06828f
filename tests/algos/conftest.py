"""An environment small enough to learn in a second."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces

# On networks this small a second thread only waits, for ever so long when the machine is busy.
th.set_num_threads(1)


class Corridor(gymnasium.Env[Any, Any]):
    """Walk right to the end for +5; 'stay' (0) is a loop, 'quit' (2) a failure; 12 steps are a time limit."""

    observation_space = spaces.Box(0, 1, (6,), np.float32)
    action_space = spaces.Discrete(3)

    def _observe(self) -> np.ndarray:
        return np.eye(6, dtype=np.float32)[self.place]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.place = self.steps = 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.place += int(action == 1)
        arrived = self.place == 5
        done = arrived or action == 2
        return self._observe(), 5.0 if arrived else -1.0, done, not done and self.steps == 12, {}


@pytest.fixture
def corridor() -> type[gymnasium.Env[Any, Any]]:
    return Corridor
