"""Adds the number of wasted transitions of an episode to its last ``info``."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from rlexp.losses.loops import count_loops


class CountLoops(gymnasium.Wrapper[Any, Any, Any, Any]):
    """``info["loops"]``: transitions inside greedy longest loops, see :func:`rlexp.losses.loops.count_loops`.

    :param env: an environment with vector observations
    :param similarity: cosine similarity above which two states are the same
    """

    def __init__(self, env: gymnasium.Env[Any, Any], similarity: float = 0.99) -> None:
        super().__init__(env)
        self._similarity = similarity
        self._states: list[Any] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin to count."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._states = [observation]
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and count at the end of the episode."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            info["loops"] = count_loops(np.array(self._states), self._similarity)
        else:
            self._states.append(observation)
        return observation, reward, terminated, truncated, info
