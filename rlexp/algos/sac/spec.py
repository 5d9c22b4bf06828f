"""Soft actor-critic, from Stable-Baselines3."""

from __future__ import annotations

from dataclasses import dataclass

from rlexp.algos.common.config import (
    AnnealedConfig,
    NetworkConfig,
    SoftActorCriticConfig,
    StateDependentExplorationConfig,
)
from rlexp.registry import AlgoSpec


@dataclass
class SACConfig(StateDependentExplorationConfig, AnnealedConfig, SoftActorCriticConfig, NetworkConfig):
    """Settings of :class:`stable_baselines3.SAC`."""


SPECS = (
    AlgoSpec(
        "sac",
        "stable_baselines3:SAC",
        "Soft actor-critic (Stable-Baselines3)",
        actions=("continuous",),
        observations=("vector", "image", "dict"),
        config=SACConfig,
    ),
)
