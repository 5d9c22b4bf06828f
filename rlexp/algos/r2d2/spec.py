"""Recurrent experience replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from rlexp.algos.common.config import ExplorationConfig, OffPolicyConfig, SequenceConfig, period_of
from rlexp.config.fields import choice, number, required
from rlexp.errors import UsageError
from rlexp.registry import AlgoSpec

# OmegaConf reads these annotations at run time and supports Optional[...] only, not the bar notation.
# ruff: noqa: UP045


@dataclass
class R2D2Config(ExplorationConfig, OffPolicyConfig, SequenceConfig):
    """Settings of :class:`~rlexp.algos.r2d2.r2d2.R2D2`."""

    dueling: bool = required()
    double_q: bool = required()
    n_steps: int = number(at_least=1)
    rescale_epsilon: Optional[float] = number(at_least=0)
    td_clip: Optional[float] = number(above=0)
    replay: str = choice("proportional", "rank")
    alpha: float = number(at_least=0, at_most=1)
    beta: float = number(at_least=0, at_most=1)
    eta: float = number(at_least=0, at_most=1)
    priority_epsilon: float = number(at_least=0)
    initial_priorities: str = choice("computed", "max")
    target_update_interval: int = number(at_least=1)
    epsilon_base: Optional[float] = number(above=0, at_most=1, formerly="ladder_base")
    epsilon_exponent: float = number(at_least=0, formerly="ladder_exponent")

    @staticmethod
    def check_together(settings: Mapping[str, Any], n_envs: int) -> None:
        """Check that sequences fit together and the replay buffer holds those that end at once.

        :raises UsageError: naming the setting
        """
        SequenceConfig.check_together(settings, n_envs)
        length, period = settings["sequence_length"], period_of(settings)
        least = n_envs * (1 + length // period) * period
        if settings["buffer_size"] < least:
            raise UsageError(
                f"buffer_size: {settings['buffer_size']} given, must be at least {least} for n_envs = {n_envs} and "
                f"sequence_length = {length}"
            )

    @staticmethod
    def check_run(settings: Mapping[str, Any], hardware: Mapping[str, Any]) -> None:
        """Check that a replay shard holds what an actor may send at once.

        :raises UsageError: naming the setting
        """
        ray = hardware.get("ray")
        if ray is None:
            return
        period = period_of(settings)
        message = ray["send_every"] + hardware["n_envs"] * (1 + settings["sequence_length"] // period)
        if settings["buffer_size"] // period // ray["replay_shards"] < message:
            raise UsageError(
                f"buffer_size: {settings['buffer_size']} given, must be at least "
                f"{message * period * ray['replay_shards']} for hardware.ray.replay_shards = {ray['replay_shards']}"
            )


SPECS = (
    AlgoSpec(
        "r2d2",
        "rlexp.algos.r2d2.r2d2:R2D2",
        "Recurrent experience replay: LSTM, stored states, burn-in (Kapturowski et al. 2019)",
        actions=("discrete",),
        observations=("vector", "image", "dict"),
        distributed=True,
        unsupported=("VecNormalize",),
        config=R2D2Config,
    ),
)
