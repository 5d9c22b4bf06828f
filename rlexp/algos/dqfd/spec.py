"""Deep Q-learning from demonstrations."""

from __future__ import annotations

from dataclasses import dataclass

from rlexp.algos.common.config import DemonstrationConfig
from rlexp.algos.dqn.spec import DQNConfig
from rlexp.config.fields import choice, number
from rlexp.registry import AlgoSpec


@dataclass
class DQfDConfig(DemonstrationConfig, DQNConfig):
    """Settings of :class:`~rlexp.algos.dqfd.dqfd.DQfD`."""

    replay: str = choice("proportional")
    pretrain_updates: int = number(at_least=0)
    agent_bonus: float = number(at_least=0)
    demonstration_bonus: float = number(at_least=0)
    n_step_coef: float = number(at_least=0)
    supervised_coef: float = number(at_least=0)
    margin: float = number(at_least=0)
    l2_coef: float = number(at_least=0)


SPECS = (
    AlgoSpec(
        "dqfd",
        "rlexp.algos.dqfd.dqfd:DQfD",
        "Deep Q-learning from demonstrations (Hester et al. 2018)",
        actions=("discrete",),
        observations=("vector", "image", "dict"),
        config=DQfDConfig,
    ),
)
