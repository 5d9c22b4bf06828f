"""Log rows at the same steps whether or not a run was interrupted."""

from __future__ import annotations

from typing import Self

from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import MaybeCallback

from rlexp.algos.common.base import ValidatedAlgorithm


class ResumableLogging(ValidatedAlgorithm, OnPolicyAlgorithm):
    """On-policy algorithm with short rollouts: logs every ``log_interval``-th since the very beginning.

    Stable-Baselines3 counts from the start of ``learn``, so that a resumed run would log at other steps.
    """

    _log_interval: int | None = None

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = 50,
        tb_log_name: str = "",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Learn as every Stable-Baselines3 algorithm does; see :class:`stable_baselines3.A2C`."""
        self._log_interval = log_interval
        name = tb_log_name or type(self).__name__
        return super().learn(total_timesteps, callback, 1, name, reset_num_timesteps, progress_bar)

    def dump_logs(self, iteration: int = 0) -> None:
        """Write the log where it is due."""
        rollouts = self.num_timesteps // (self.n_steps * self.n_envs)
        if self._log_interval is not None and rollouts % self._log_interval == 0:
            super().dump_logs(iteration)
