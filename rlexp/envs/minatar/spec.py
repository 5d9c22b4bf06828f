"""What the runner knows of ``env=minatar`` before it is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from rlexp.config.fields import choice, number, required
from rlexp.registry import EnvSpec

# OmegaConf reads these annotations at run time and supports Optional[...] only, not the bar notation.
# ruff: noqa: UP045


@dataclass
class MinAtarConfig:
    """Settings of :class:`rlexp.envs.minatar.env.MinAtarEnv`."""

    name: str = required()
    game: str = choice("asterix", "breakout", "freeway", "seaquest", "space_invaders")
    sticky_action_prob: float = number(at_least=0, at_most=1)
    difficulty_ramping: bool = required()
    minimal_actions: bool = required()
    max_steps: Optional[int] = number(at_least=1)


SPECS = (
    EnvSpec(
        "minatar",
        "rlexp.envs.minatar.env:make",
        "MinAtar, five Atari games on a 10x10 grid: env.game=breakout",
        actions="discrete",
        observations="image",
        config=MinAtarConfig,
    ),
)
