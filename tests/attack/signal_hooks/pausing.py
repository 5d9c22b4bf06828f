"""An environment that pauses where ``RLEXP_PAUSE_AT`` says.

``build:N``: when the N-th environment of the process is built; ``rollout``, ``evaluation``, ``final``: at a step of
training, of an evaluation, of the evaluation after training; ``hang``, ``evaluation:hang``, ``final:hang``: forever.
"""

import os
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pause

MOMENT = os.environ.get("RLEXP_PAUSE_AT", "")
PAUSE_AT_STEP = 45  # in the third rollout of twenty


class Pausing(gymnasium.Env[Any, Any]):
    """Ten steps of noise; the reward depends on action and observation."""

    observation_space = gymnasium.spaces.Box(-10, 10, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    built = 0
    trained: "Pausing | None" = None  # only training lets an episode follow without a seed

    def __init__(self) -> None:
        Pausing.built += 1
        if f"build:{Pausing.built}" == MOMENT:
            pause.pause()
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is None:
            Pausing.trained = self
        self._left = 10
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        self._left -= 1
        where, _, hang = MOMENT.partition(":")
        evaluating = "evaluate" in sys.argv or Pausing.trained not in (None, self)
        trained = any(Path.cwd().glob("outputs/runs/*/*/*/*/model.zip"))
        if (
            (where in ("rollout", "hang") and not evaluating and self._steps == PAUSE_AT_STEP)
            or (where == "evaluation" and evaluating and not trained and self._steps == 5)
            or (where == "final" and evaluating and trained)
        ):
            pause.pause(hang=bool(hang) or where == "hang")
        observation = self._observe()
        return observation, float(observation[0] * (2 * int(action) - 1)), False, self._left == 0, {}

    def _observe(self) -> Any:
        return self.np_random.normal(size=2).astype(np.float32)


gymnasium.register("Pausing-v0", entry_point=Pausing, disable_env_checker=True)
