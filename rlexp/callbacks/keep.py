"""Safe points: checkpoints, orderly interruption, and a stop at the first parameter that is not finite."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch as th
from stable_baselines3.common.callbacks import BaseCallback

from rlexp.errors import NonFiniteError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_CHECK_SECONDS = 1.0


class Interrupted(Exception):
    """The run was asked to stop and its state has been kept.

    :param signal_number: what asked
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.exit_code = 128 + signal_number


class Keep(BaseCallback):
    """Acts where nothing is half done: at the start of a rollout, after the update before it.

    :param save: writes a checkpoint
    :param every_timesteps: steps between checkpoints, None: not by steps
    :param every_minutes: minutes between checkpoints, None: not by time
    """

    def __init__(
        self, save: Callable[[], Any], every_timesteps: int | None, every_minutes: float | None
    ) -> None:
        super().__init__()
        self._save = save
        self._every_timesteps = every_timesteps
        self._every_seconds = None if every_minutes is None else 60 * every_minutes
        self._saved_at_step = 0
        self._saved_at = self._checked_at = time.monotonic()
        self._asked: int | None = None
        self._handlers: dict[int, Any] = {}

    def listen(self) -> None:
        """Turn SIGINT and SIGTERM into a stop at the next safe point; a second one stops at once."""
        for number in _SIGNALS:
            self._handlers[number] = signal.signal(number, self._ask)

    def unlisten(self) -> None:
        """Put the signal handlers back."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self._asked is not None:
            self.unlisten()
            raise KeyboardInterrupt
        self._asked = number

    def _on_training_start(self) -> None:
        self._saved_at_step = self.num_timesteps
        self._saved_at = time.monotonic()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self._asked is not None:
            self._check_parameters()
            self._save()
            raise Interrupted(self._asked)
        now = time.monotonic()
        by_steps = self._every_timesteps is not None and (
            self.num_timesteps // self._every_timesteps > self._saved_at_step // self._every_timesteps
        )
        by_time = self._every_seconds is not None and now - self._saved_at >= self._every_seconds
        if by_steps or by_time:
            self._check_parameters()
            self._save()
            self._saved_at_step, self._saved_at = self.num_timesteps, now
        elif now - self._checked_at >= _CHECK_SECONDS:  # off-policy rollouts can be a step long
            self._check_parameters()
            self._checked_at = now

    def _on_training_end(self) -> None:
        self._check_parameters()

    def _check_parameters(self) -> None:
        for name, parameter in self.model.policy.named_parameters():
            if not bool(th.isfinite(parameter).all()):
                raise NonFiniteError(f"parameter {name} is not finite at step {self.num_timesteps}")
