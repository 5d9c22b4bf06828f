"""Stopping a training in the middle, the way a checkpoint sees it."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from rlexp import checkpoint


class StopAt(BaseCallback):
    """Captures the state at the first safe point after some step, then stops."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step
        self.state: dict[str, Any] | None = None

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self.step and self.state is None:
            self.state = checkpoint.capture(self.model)

    def _on_step(self) -> bool:
        return self.state is None
