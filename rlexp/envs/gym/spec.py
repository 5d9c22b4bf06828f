"""What the runner knows of ``env=gym`` before it is imported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlexp.config.fields import required
from rlexp.registry import EnvSpec


@dataclass
class GymConfig:
    """Arguments of ``gymnasium.make``; see :func:`rlexp.envs.gym.env.make`."""

    name: str = required()
    id: str = required()
    kwargs: dict[str, Any] = field(default_factory=dict)


SPECS = (
    EnvSpec(
        "gym",
        "rlexp.envs.gym.env:make",
        "Any registered gymnasium environment: env.id=CartPole-v1",
        config=GymConfig,
    ),
)
