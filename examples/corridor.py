"""Walk right to the end of a corridor."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Corridor(gymnasium.Env[Any, Any]):
    """Five cells; the last one pays."""

    observation_space = spaces.Box(0, 1, (5,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin in one of the first two cells."""
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(2))
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Go left or right."""
        self.cell = max(0, self.cell + (1 if action == 1 else -1))
        done = self.cell == 4
        return self._observe(), 1.0 if done else -0.1, done, False, {"is_success": done}

    def _observe(self) -> Any:
        return np.eye(5, dtype=np.float32)[self.cell]


gymnasium.register("Corridor-v0", Corridor, max_episode_steps=50)
