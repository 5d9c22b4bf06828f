"""A chain of n states in which one of two actions advances and the other ends the episode."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

State = npt.NDArray[np.float32]


class BlindCliffwalkEnv(gymnasium.Env[State, np.int64]):
    """At random, an episode ends in reward 1 once in ``2 ** n_states`` times; every other reward is 0.

    Which action is the right one differs from state to state, so that nothing carries over from one to the next.

    :param n_states: length of the chain
    :param layout_seed: decides the right actions; part of the environment, not of its randomness
    :raises ValueError: when there are no states
    """

    def __init__(self, n_states: int = 8, layout_seed: int = 0) -> None:
        if n_states < 1:
            raise ValueError(f"n_states: {n_states} given, must be at least 1")
        self.n_states = n_states
        self.right_actions = np.random.default_rng(layout_seed).integers(0, 2, size=n_states)
        self.observation_space = spaces.Box(0, 1, (n_states,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._state = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[State, dict[str, Any]]:
        """Begin at the first state."""
        super().reset(seed=seed)
        self._state = 0
        return self._observe(), {}

    def step(self, action: np.int64) -> tuple[State, float, bool, bool, dict[str, Any]]:
        """Advance or fall."""
        right = int(action) == self.right_actions[self._state]
        arrived = bool(right and self._state == self.n_states - 1)
        if right and not arrived:
            self._state += 1
        return self._observe(), float(arrived), arrived or not right, False, {"is_success": arrived}

    def _observe(self) -> State:
        observation: State = np.eye(self.n_states, dtype=np.float32)[self._state]
        return observation
