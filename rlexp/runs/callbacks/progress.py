"""Shows how far training is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback

from rlexp.runs.callbacks.budget import Budget
from rlexp.runs.callbacks.evaluate import Evaluate
from rlexp.system import terminal


class Progress(BaseCallback):
    """Shows episodes, steps, time left and the last evaluation.

    :param console: where to
    :param budget: counts episodes
    :param evaluate: knows the last evaluation; None when nothing is evaluated
    :param total_timesteps: step budget, None when only episodes are limited
    :param episode: what an episode is called, e.g. "dialogue"
    """

    def __init__(
        self,
        console: Console,
        budget: Budget,
        evaluate: Evaluate | None,
        total_timesteps: int | None,
        episode: str,
    ) -> None:
        super().__init__()
        self._console = console
        self._budget = budget
        self._evaluate = evaluate
        self._total_timesteps = total_timesteps
        self._episode = episode
        self._open = ExitStack()
        self._changed: Callable[[], None] | None = None

    def _on_training_start(self) -> None:
        by_episodes = self._budget.total_episodes is not None
        what = f"{self._episode}s" if by_episodes else "steps"
        total = self._budget.total_episodes if by_episodes else self._total_timesteps
        bar = terminal.progress(self._console, what, total, lambda: (self._count(), self._note()))
        self._changed = self._open.enter_context(bar)

    def _on_step(self) -> bool:
        if self._changed is not None:
            self._changed()
        return True

    def close(self) -> None:
        """Take the bar down, however the run ended."""
        self._open.close()

    def _count(self) -> int:
        return self._budget.episodes if self._budget.total_episodes is not None else self.num_timesteps

    def _note(self) -> str:
        last = self._evaluate.last if self._evaluate is not None else None
        steps = f"{self.num_timesteps:,} steps" if self._budget.total_episodes is not None else ""
        if last is None:
            return steps
        shown = (
            f"success {last['success_rate']:.1%}"
            if "success_rate" in last
            else f"return {last['return_mean']:.1f}"
        )
        return f"{steps} {shown}".strip()
