"""Proximal policy optimisation, from Stable-Baselines3 and sb3-contrib."""

from __future__ import annotations

from dataclasses import dataclass

from rlexp.algos.common.config import AnnealedConfig, ClippedPolicyConfig, StateDependentExplorationConfig
from rlexp.config.fields import required, schedule
from rlexp.registry import AlgoSpec


@dataclass
class PPOConfig(StateDependentExplorationConfig, AnnealedConfig, ClippedPolicyConfig):
    """Settings of :class:`stable_baselines3.PPO`."""

    normalize_advantage: bool = required()
    clip_range_schedule: str = schedule("constant", "linear")


SPECS = (
    AlgoSpec(
        "ppo",
        "stable_baselines3:PPO",
        "Proximal policy optimisation (Stable-Baselines3; sb3-contrib's MaskablePPO where actions are masked)",
        actions=("discrete", "continuous"),
        observations=("vector", "image", "dict"),
        masked_target="sb3_contrib:MaskablePPO",
        config=PPOConfig,
    ),
)
