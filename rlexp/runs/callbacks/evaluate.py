"""Evaluates every so many episodes or steps and appends a row to ``evaluations.jsonl``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from rlexp.runs.callbacks.budget import Budget
from rlexp.runs.evaluation import Evaluator


class Evaluate(BaseCallback):
    """Runs the evaluator at exact counts of episodes or steps.

    An algorithm updates once more after the last step of its budget, so that an evaluation which is due at that step
    waits for :meth:`evaluate` at the end of the run: the last row is of exactly the weights that the run leaves.

    :param evaluator: plays the evaluation episodes
    :param budget: counts episodes; must come first in the list of callbacks
    :param every_episodes: after every so many episodes, None: never by episodes
    :param every_timesteps: after every so many steps, None: never by steps
    :param total_timesteps: step budget of the run, None: only episodes are limited
    :param sink: takes each row
    """

    def __init__(
        self,
        evaluator: Evaluator,
        budget: Budget,
        every_episodes: int | None,
        every_timesteps: int | None,
        total_timesteps: int | None,
        sink: Callable[[dict[str, Any]], None],
    ) -> None:
        super().__init__()
        self.last: dict[str, Any] | None = None
        self.wall_s = 0.0
        self._evaluator = evaluator
        self._budget = budget
        self._every = (every_episodes, every_timesteps)
        self._total_timesteps = total_timesteps
        self._done = [0, 0]  # intervals that have passed
        self._sink = sink

    def state(self) -> dict[str, Any]:
        """Return the state to be saved in checkpoints."""
        return {"last": self.last, "wall_s": self.wall_s}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned; position and budget must be restored already."""
        self.last, self.wall_s = state["last"], state["wall_s"]
        if self.last is not None and "n_updates" in state:  # of earlier versions
            self.last = {**self.last, "updates": state["n_updates"]}
        self._done = (
            self._passed()
        )  # by the intervals of now, which may differ from those before the interruption

    def evaluate(self) -> dict[str, Any]:
        """Evaluate now, unless the last row is of this position and of these weights already."""
        position = {
            "episodes": self._budget.episodes,
            "timesteps": self.num_timesteps,
            "updates": int(self.model._n_updates),
        }
        if self.last is not None and all(self.last.get(key) == value for key, value in position.items()):
            return self.last
        self.last = {**position, **self._evaluator.evaluate(self.model)}
        self.wall_s += self.last["wall_s"]
        self._sink(self.last)
        return self.last

    def _on_step(self) -> bool:
        passed = self._passed()
        due, self._done = passed != self._done, passed
        is_last = self._total_timesteps is not None and self.num_timesteps >= self._total_timesteps
        if due and not is_last:
            self.evaluate()
        return True

    def _passed(self) -> list[int]:
        """Return how many intervals have passed, by episodes and by steps."""
        counts = (self._budget.episodes, self.num_timesteps)
        return [count // every if every else 0 for every, count in zip(self._every, counts, strict=True)]
