"""What an environment wants recorded besides the returns of its episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from stable_baselines3.common.callbacks import BaseCallback

from rlexp.runs.callbacks.budget import Budget


class Tracker(Protocol):
    """Collects what an environment says in its infos; the class that the environment's spec names.

    Rows, entries and states are JSON values.
    """

    def step(self, env: int, info: Mapping[str, Any], done: bool) -> dict[str, Any] | None:
        """Take the info of a training step.

        :param env: number of the environment among those stepped together
        :param info: of this step; an episode's last one where ``done``
        :return: a row for the run's file, None for none
        """

    def record(self) -> dict[str, Any]:
        """Return entries for ``record.json``."""

    @staticmethod
    def evaluation(episodes: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
        """Return entries for a row of ``evaluations.jsonl``.

        :param episodes: the infos of every evaluation episode, in order, empty ones left out
        """

    def state(self) -> dict[str, Any]:
        """Return the state to be saved in checkpoints."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""


class Track(BaseCallback):
    """Shows every training step to the environment's tracker.

    :param tracker: of the environment
    :param budget: counts episodes; must come first in the list of callbacks
    :param sink: takes each row
    """

    def __init__(self, tracker: Tracker, budget: Budget, sink: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self._tracker = tracker
        self._budget = budget
        self._sink = sink

    def _on_step(self) -> bool:
        for env, (done, info) in enumerate(zip(self.locals["dones"], self.locals["infos"], strict=True)):
            row = self._tracker.step(env, info, done)
            if row is not None:
                self._sink({**self._budget.position(), "task": env, **row})
        return True
