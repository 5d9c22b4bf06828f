"""Deep Q-networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from rlexp.algos.common.config import ExplorationConfig, NetworkConfig, OffPolicyConfig
from rlexp.config.fields import choice, number, required
from rlexp.registry import AlgoSpec

# OmegaConf reads these annotations at run time and supports Optional[...] only, not the bar notation.
# ruff: noqa: UP045


@dataclass
class DQNConfig(ExplorationConfig, OffPolicyConfig, NetworkConfig):
    """Settings of :class:`~rlexp.algos.dqn.dqn.DQN`."""

    double_q: bool = required()
    dueling: bool = required()
    n_steps: int = number(at_least=1)
    replay: str = choice("uniform", "proportional", "rank")
    alpha: Optional[float] = number(at_least=0, at_most=1)
    beta: Optional[float] = number(at_least=0, at_most=1)
    priority_epsilon: float = number(at_least=0)
    weights_by: str = choice("buffer", "batch")
    sort_every: Optional[int] = number(at_least=1)
    target_update_interval: int = number(at_least=1)
    max_grad_norm: Optional[float] = number(above=0)
    reward_clip: Optional[float] = number(above=0)
    td_clip: Optional[float] = number(above=0)
    share_frames: Optional[bool] = required()


SPECS = (
    AlgoSpec(
        "dqn",
        "rlexp.algos.dqn.dqn:DQN",
        "Deep Q-network: double, dueling, n-step; uniform, proportional or rank-based replay",
        actions=("discrete",),
        observations=("vector", "image", "dict"),
        config=DQNConfig,
    ),
)
