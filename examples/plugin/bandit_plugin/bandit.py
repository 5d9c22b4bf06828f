"""An environment from outside."""

from typing import Any

import gymnasium
import numpy as np


class Bandit(gymnasium.Env[Any, Any]):
    """One pull an episode."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, pays: int) -> None:
        self.pays = pays

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin."""
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Pull."""
        won = int(action) == self.pays
        return np.zeros(1, np.float32), float(won), True, False, {"is_success": won, "arm": float(action)}


def make(pays: int) -> gymnasium.Env[Any, Any]:
    """Build it."""
    return Bandit(pays)
