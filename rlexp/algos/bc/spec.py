"""Behaviour cloning."""

from __future__ import annotations

from dataclasses import dataclass

from rlexp.algos.common.config import DemonstrationConfig, SequenceConfig
from rlexp.config.fields import number
from rlexp.registry import AlgoSpec


@dataclass
class BCConfig(DemonstrationConfig, SequenceConfig):
    """Settings of :class:`~rlexp.algos.bc.bc.BC`."""

    validation_fraction: float = number(at_least=0, below=1, formerly="validation_share")
    l2_coef: float = number(at_least=0)
    updates_per_round: int = number(at_least=1)


SPECS = (
    AlgoSpec(
        "bc",
        "rlexp.algos.bc.bc:BC",
        "Behaviour cloning, recurrent or not",
        actions=("discrete",),
        observations=("vector", "image", "dict"),
        config=BCConfig,
    ),
)
