"""What the runner knows of ``env=blind_cliffwalk`` before it is imported."""

from __future__ import annotations

from dataclasses import dataclass

from rlexp.config.fields import number, required
from rlexp.registry import EnvSpec


@dataclass
class BlindCliffwalkConfig:
    """Settings of :class:`rlexp.envs.blind_cliffwalk.env.BlindCliffwalkEnv`."""

    name: str = required()
    n_states: int = number(at_least=1, at_most=1_000_000)
    layout_seed: int = number(at_least=0)


SPECS = (
    EnvSpec(
        "blind_cliffwalk",
        "rlexp.envs.blind_cliffwalk.env:BlindCliffwalkEnv",
        "Chain of states with one right action each; reward only at its end",
        actions="discrete",
        observations="vector",
        gymnasium_id="rlexp/BlindCliffwalk-v0",
        config=BlindCliffwalkConfig,
    ),
)
