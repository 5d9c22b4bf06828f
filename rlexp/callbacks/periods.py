"""Parts of an episode that is too long to wait for: the months of a year, one row each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from rlexp.callbacks.budget import Budget


class Periods(BaseCallback):
    """Hands on every ``info["period"]`` of the training tasks.

    :param budget: counts episodes; must come first in the list of callbacks
    :param sink: takes each row
    """

    def __init__(self, budget: Budget, sink: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self._budget = budget
        self._sink = sink
        self._first: list[dict[str, Any]] = []  # periods of the first episode of the first task
        self.first_episode: dict[str, Any] | None = None

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint must keep."""
        return {"first": self._first, "first_episode": self.first_episode}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what :meth:`state` returned."""
        self._first, self.first_episode = list(state["first"]), state["first_episode"]

    def _on_step(self) -> bool:
        for place, (done, info) in enumerate(zip(self.locals["dones"], self.locals["infos"], strict=True)):
            if "period" in info:
                self._sink({**self._budget.position(), "task": place, **info["period"]})
                if place == 0 and self.first_episode is None:
                    self._first.append(info["period"])
            if done and place == 0 and self.first_episode is None:
                means = {key: info[key] for key in self._budget.metrics if key in info}
                self.first_episode = {**means, "periods": self._first}
        return True
