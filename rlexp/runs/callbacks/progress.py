"""Shows how far training is."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback

from rlexp.runs.callbacks.budget import Budget
from rlexp.runs.callbacks.evaluate import Evaluate
from rlexp.system import terminal


class Progress(BaseCallback):
    """Shows episodes, steps, speed, time left and the last evaluation, or before it the return of training.

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
        self._since = 0.0
        self._first_step = 0

    def _on_training_start(self) -> None:
        self._since, self._first_step = time.monotonic(), self.num_timesteps
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
        steps = f"{self.num_timesteps:,} steps" if self._budget.total_episodes is not None else ""
        seconds = time.monotonic() - self._since
        speed = f"{(self.num_timesteps - self._first_step) / seconds:,.0f} steps/s" if seconds > 0 else ""
        return "  ".join(part for part in (steps, speed, self._result()) if part)

    def _result(self) -> str:
        """Return the last evaluation; before there is one, what the last episodes of training came to."""
        last = self._evaluate.last if self._evaluate is not None else None
        if last is not None:
            rate = last.get("success_rate")
            return f"return {last['return_mean']:.1f}" if rate is None else f"success {rate:.1%}"
        if self.model.ep_success_buffer:
            return f"training success {np.mean(self.model.ep_success_buffer):.1%}"
        if self.model.ep_info_buffer:
            return f"training return {np.mean([info['r'] for info in self.model.ep_info_buffer]):.1f}"
        return ""
