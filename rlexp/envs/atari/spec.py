"""What the runner knows of ``env=atari`` before it is imported."""

from __future__ import annotations

from dataclasses import dataclass

from rlexp.config.fields import number, required
from rlexp.registry import EnvSpec


@dataclass
class AtariConfig:
    """Settings of :class:`rlexp.envs.atari.env.AtariEnv`."""

    name: str = required()
    id: str = required()
    sticky_action_prob: float = number(at_least=0, at_most=1)
    frame_skip: int = number(at_least=1)
    frame_stack: int = number(at_least=1)
    noop_max: int = number(at_least=0)
    max_frames: int = number(at_least=1)


SPECS = (
    EnvSpec(
        "atari",
        "rlexp.envs.atari.env:make",
        "Atari games, 84x84x4: env=pong, qbert, space_invaders, or env.id=",
        actions="discrete",
        observations="image",
        config=AtariConfig,
    ),
)
