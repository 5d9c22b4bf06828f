"""A progress bar on a terminal, one line now and then elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from stable_baselines3.common.callbacks import BaseCallback

from rlexp.callbacks.budget import Budget
from rlexp.callbacks.evaluate import Evaluate

_QUIET_SECONDS = 15.0


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
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._shown_at = 0.0

    def _on_training_start(self) -> None:
        self._shown_at = time.monotonic()
        if not self._console.is_terminal:
            return
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(),
            console=self._console,
            refresh_per_second=4,
        )
        by_episodes = self._budget.total_episodes is not None
        self._task = self._bar.add_task(
            f"{self._episode}s" if by_episodes else "steps",
            total=self._total(),
            completed=self._count(),
            note="",
        )
        self._bar.start()

    def _on_step(self) -> bool:
        now = time.monotonic()
        if self._bar is not None and self._task is not None:
            if now - self._shown_at >= 0.25:
                self._shown_at = now
                self._bar.update(self._task, completed=self._count(), note=self._note())
        elif now - self._shown_at >= _QUIET_SECONDS:
            self._shown_at = now
            self._console.print(f"{self._count()}/{self._total()} {self._note()}", highlight=False)
        return True

    def close(self) -> None:
        """Take the bar down, however the run ended."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._count(), note=self._note())
            self._bar.stop()
            self._bar = None

    def _count(self) -> int:
        return self._budget.episodes if self._budget.total_episodes is not None else self.num_timesteps

    def _total(self) -> int | None:
        return (
            self._budget.total_episodes if self._budget.total_episodes is not None else self._total_timesteps
        )

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
