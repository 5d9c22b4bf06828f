"""Recurrent experience replay with demonstrations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from rlexp.algos.common.config import DemonstrationConfig
from rlexp.algos.r2d2.spec import R2D2Config
from rlexp.config.fields import choice, number
from rlexp.registry import AlgoSpec

# OmegaConf reads these annotations at run time and supports Optional[...] only, not the bar notation.
# ruff: noqa: UP045


@dataclass
class R2D3Config(DemonstrationConfig, R2D2Config):
    """Settings of :class:`~rlexp.algos.r2d3.r2d3.R2D3`."""

    demonstration_ratio: float = number(at_least=0, at_most=1, formerly="demonstration_share")
    demonstration_priority_epsilon: float = number(at_least=0)
    pretrain_updates: int = number(at_least=0)
    loss: str = choice("paper", "dqfd", former_values={"page": "dqfd"})
    n_step_coef: Optional[float] = number(at_least=0)
    one_step_coef: Optional[float] = number(at_least=0)
    supervised_coef: Optional[float] = number(at_least=0)
    l2_coef: Optional[float] = number(at_least=0)
    margin: float = number(at_least=0)


SPECS = (
    AlgoSpec(
        "r2d3",
        "rlexp.algos.r2d3.r2d3:R2D3",
        "R2D2 with demonstrations in a replay of their own (Paine et al. 2019)",
        actions=("discrete",),
        observations=("vector", "image", "dict"),
        distributed=True,
        unsupported=("VecNormalize",),
        config=R2D3Config,
    ),
)
