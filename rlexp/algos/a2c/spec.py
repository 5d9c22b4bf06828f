"""Advantage actor-critic."""

from __future__ import annotations

from dataclasses import dataclass

from rlexp.algos.common.config import ActorCriticConfig, AnnealedConfig, StateDependentExplorationConfig
from rlexp.config.fields import number, required
from rlexp.registry import AlgoSpec


@dataclass
class A2CConfig(StateDependentExplorationConfig, AnnealedConfig, ActorCriticConfig):
    """Settings of :class:`stable_baselines3.A2C`."""

    gae_lambda: float = number(at_least=0, at_most=1)
    use_rms_prop: bool = required()
    rms_prop_eps: float = number(above=0)
    normalize_advantage: bool = required()


SPECS = (
    AlgoSpec(
        "a2c",
        "rlexp.algos.a2c.a2c:A2C",
        "Advantage actor-critic (Stable-Baselines3)",
        actions=("discrete", "continuous"),
        observations=("vector", "image", "dict"),
        config=A2CConfig,
    ),
)
