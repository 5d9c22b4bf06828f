"""Counts episodes, averages the environment's own metrics and ends the run when its budget is used up."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback


class Budget(BaseCallback):
    """First of the callbacks: the others read its counters.

    :param total_episodes: episodes after which training stops; None: no such limit
    :param metrics: keys of an episode's last ``info`` to be averaged as ``rollout/<key>``
    :param window: episodes to average over
    :param defines_progress: there is no budget of steps, so that training progress (exploration rates etc.) follows the
        episodes
    """

    def __init__(
        self,
        total_episodes: int | None,
        metrics: tuple[str, ...],
        window: int = 100,
        defines_progress: bool = False,
    ) -> None:
        super().__init__()
        self.total_episodes = total_episodes
        self.defines_progress = defines_progress
        self.episodes = 0
        self.metrics = metrics
        self._recent: dict[str, deque[float]] = {metric: deque(maxlen=window) for metric in metrics}

    def position(self) -> dict[str, int]:
        """Return how far the run has come."""
        return {"timesteps": self.num_timesteps, "episodes": self.episodes}

    def state(self) -> dict[str, Any]:
        """Return the state to be saved in checkpoints."""
        return {
            "episodes": self.episodes,
            "recent": {key: list(values) for key, values in self._recent.items()},
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        self.episodes = state["episodes"]
        for key, values in state["recent"].items():
            self._recent[key].extend(values)

    def _on_step(self) -> bool:
        for done, info in zip(self.locals["dones"], self.locals["infos"], strict=True):
            if done:
                self.episodes += 1
                for key, values in self._recent.items():
                    if key in info:
                        values.append(float(info[key]))
        if self.defines_progress and self.episodes and self.total_episodes is not None:
            # Schedules of Stable-Baselines3 know steps alone: as many as the episodes so far let expect.
            expected = self.num_timesteps * self.total_episodes // self.episodes
            self.model._total_timesteps = max(expected, self.num_timesteps)
        return self.total_episodes is None or self.episodes < self.total_episodes

    def _on_rollout_end(self) -> None:
        for key, values in self._recent.items():
            if values:
                self.logger.record(f"rollout/{key}", float(np.mean(values)))
