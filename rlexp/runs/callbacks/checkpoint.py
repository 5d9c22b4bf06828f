"""At rollout boundaries: checkpoints, orderly interruption, and a stop at the first non-finite parameter."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch as th
from stable_baselines3.common.callbacks import BaseCallback

from rlexp.errors import NonFiniteError
from rlexp.system import stopping

_CHECK_SECONDS = 1.0


class Checkpoint(BaseCallback):
    """Acts at rollout boundaries, where no transition is half stored and no update half done.

    Stable-Baselines3's own ``CheckpointCallback`` saves within a step, before its transition reaches the buffer.

    :param save: writes a checkpoint
    :param every_timesteps: environment steps between checkpoints, None: not by steps
    :param every_minutes: minutes between checkpoints, None: not by time
    :raises Stopped: from ``learn``, after a signal and a last checkpoint
    :raises NonFiniteError: from ``learn``, when a parameter of the policy became NaN or infinite
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

    def _on_training_start(self) -> None:
        self._saved_at_step = self.num_timesteps
        self._saved_at = time.monotonic()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if stopping.requested() is not None:
            self._check_parameters()
            self._save()
            stopping.raise_if_requested()
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
