"""Where a resumed run draws the noise that the interrupted one had drawn."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from rlexp.runs import checkpoint


class RestoreNoise(BaseCallback):
    """Restores random generators and state-dependent noise when the first rollout begins.

    Stable-Baselines3 draws that noise before it says that a rollout begins, which is where checkpoints are taken: a
    resumed run would draw it a second time.

    :param state: of the model, from a checkpoint
    """

    def __init__(self, state: dict[str, Any]) -> None:
        super().__init__()
        self._state: dict[str, Any] | None = state

    def _on_rollout_start(self) -> None:
        if self._state is not None:
            checkpoint.restore_random_state(self.model, self._state)
            self._state = None

    def _on_step(self) -> bool:
        return True
