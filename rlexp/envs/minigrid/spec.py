"""What the runner knows of ``env=minigrid`` before it is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from rlexp.config.fields import number, required
from rlexp.registry import EnvSpec

# OmegaConf reads these annotations at run time and supports Optional[...] only, not the bar notation.
# ruff: noqa: UP045


@dataclass
class MiniGridConfig:
    """Settings of :class:`rlexp.envs.minigrid.env.GridEnv`."""

    name: str = required()
    id: str = required()
    mission_length: int = number(at_least=0, at_most=255)
    max_steps: Optional[int] = number(at_least=1)


SPECS = (
    EnvSpec(
        "minigrid",
        "rlexp.envs.minigrid.env:make",
        "MiniGrid and BabyAI: env=unlock_pickup, blocked_unlock_pickup, key_corridor, unlock_local, memory, or env.id=",
        actions="discrete",
        observations="dict",
        controllers=("handcrafted",),
        encoder="rlexp.networks.minigrid:MiniGridExtractor",
        gymnasium_families=("MiniGrid-", "BabyAI-"),
        config=MiniGridConfig,
    ),
)
