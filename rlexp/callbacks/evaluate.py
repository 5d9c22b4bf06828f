"""Evaluates every so many episodes or steps and appends a row to ``evaluations.jsonl``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from rlexp.callbacks.budget import Budget
from rlexp.evaluation import Evaluator


class Evaluate(BaseCallback):
    """Runs the evaluator at exact episode counts.

    :param evaluator: plays the evaluation episodes
    :param budget: counts episodes; must come first in the list of callbacks
    :param every_episodes: after every so many episodes, None: never by episodes
    :param every_timesteps: after every so many steps, None: never by steps
    :param sink: takes each row
    """

    def __init__(
        self,
        evaluator: Evaluator,
        budget: Budget,
        every_episodes: int | None,
        every_timesteps: int | None,
        sink: Callable[[dict[str, Any]], None],
    ) -> None:
        super().__init__()
        self.last: dict[str, Any] | None = None
        self.wall_s = 0.0
        self._evaluator = evaluator
        self._budget = budget
        self._every = (every_episodes, every_timesteps)
        self._done = [0, 0]
        self._sink = sink

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint must keep."""
        return {"last": self.last, "done": self._done, "wall_s": self.wall_s}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what :meth:`state` returned."""
        self.last, self._done, self.wall_s = state["last"], list(state["done"]), state["wall_s"]

    def evaluate(self) -> dict[str, Any]:
        """Evaluate now, unless that has just been done."""
        position = {"episodes": self._budget.episodes, "timesteps": self.num_timesteps}
        if self.last is not None and all(self.last[key] == value for key, value in position.items()):
            return self.last
        self.last = {**position, **self._evaluator.evaluate(self.model)}
        self.wall_s += self.last["wall_s"]
        self._sink(self.last)
        return self.last

    def _on_step(self) -> bool:
        due = False
        for index, (every, count) in enumerate(
            zip(self._every, (self._budget.episodes, self.num_timesteps), strict=True)
        ):
            if every is not None and count // every > self._done[index]:
                self._done[index] = count // every
                due = True
        if due:
            self.evaluate()
        return True
