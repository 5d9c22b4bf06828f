"""Loop-clipping policy optimisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from rlexp.algos.common.config import ClippedPolicyConfig
from rlexp.config.fields import choice, number, required
from rlexp.registry import AlgoSpec

# OmegaConf reads these annotations at run time and supports Optional[...] only, not the bar notation.
# ruff: noqa: UP045


@dataclass
class LCPOConfig(ClippedPolicyConfig):
    """Settings of :class:`~rlexp.algos.lcpo.lcpo.LCPO`."""

    policy: str = choice("auto", "MlpPolicy")
    clip_gae: bool = required()
    clip_lae: bool = required()
    clip_n_hop_loops: bool = required()
    clip_termination_loops: bool = required()
    loop_similarity: float = number(above=0, at_most=1)
    advantage_scaling: str = choice("rms", "standard", "none")
    learning_rate_decay_steps: Optional[int] = number(at_least=1)


SPECS = (
    AlgoSpec(
        "lcpo",
        "rlexp.algos.lcpo.lcpo:LCPO",
        "Loop-clipping policy optimisation (Wu & Rasmussen 2021)",
        actions=("discrete",),
        observations=("vector",),
        masked_target="rlexp.algos.lcpo.lcpo:MaskableLCPO",
        config=LCPOConfig,
    ),
)
