"""What the learners with recurrent replay and from demonstrations can be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from omegaconf import MISSING

from rlexp.config.dqn import DQNConfig
from rlexp.config.fields import choice, given, number

# OmegaConf reads these annotations at run time and knows Optional[...], not the bar notation.
# ruff: noqa: UP045


@dataclass
class RecurrentNetConfig:
    """The network; see :class:`rlexp.networks.recurrent.RecurrentNet`."""

    name: str = given()
    policy: str = choice("auto", "MlpPolicy", "CnnPolicy", "MultiInputPolicy")
    net_arch: Any = MISSING
    activation_fn: str = choice("ReLU", "Tanh", "ELU", "LeakyReLU", "GELU", "SiLU")
    lstm_hidden_size: int = number(at_least=0)
    n_lstm_layers: int = number(at_least=1)
    head_arch: list[int] = field(default_factory=list)
    previous_action: bool = given()
    previous_reward: bool = given()
    learning_rate: float = number(above=0)
    batch_size: int = number(at_least=1)
    sequence_length: int = number(at_least=1)
    burn_in: int = number(at_least=0)
    period: Optional[int] = number(at_least=1)
    max_grad_norm: Optional[float] = number(above=0)


@dataclass
class R2D2Config(RecurrentNetConfig):
    """Recurrent replay; see :class:`rlexp.algos.r2d2.R2D2`."""

    dueling: bool = given()
    double_q: bool = given()
    n_steps: int = number(at_least=1)
    gamma: float = number(above=0, at_most=1)
    rescale_epsilon: Optional[float] = number(at_least=0)
    td_clip: Optional[float] = number(above=0)
    buffer_size: int = number(at_least=1)
    learning_starts: int = number(at_least=0)
    replay: str = choice("proportional", "rank")
    alpha: float = number(at_least=0, at_most=1)
    beta: float = number(at_least=0, at_most=1)
    eta: float = number(at_least=0, at_most=1)
    priority_epsilon: float = number(at_least=0)
    initial_priorities: str = choice("computed", "max")
    train_freq: int = number(at_least=1)
    gradient_steps: int = number(at_least=-1)
    target_update_interval: int = number(at_least=1)
    tau: float = number(above=0, at_most=1)
    exploration_initial_eps: float = number(at_least=0, at_most=1)
    exploration_final_eps: float = number(at_least=0, at_most=1)
    exploration_fraction: float = number(above=0, at_most=1)
    ladder_base: Optional[float] = number(above=0, at_most=1)
    ladder_exponent: float = number(at_least=0)


@dataclass
class R2D3Config(R2D2Config):
    """Recurrent replay with demonstrations; see :class:`rlexp.algos.r2d3.R2D3`."""

    demonstrations: str = MISSING
    demonstration_episodes: Optional[int] = number(at_least=1)
    demonstration_share: float = number(at_least=0, at_most=1)
    demonstration_priority_epsilon: float = number(at_least=0)
    pretrain_updates: int = number(at_least=0)
    loss: str = choice("paper", "page")
    n_step_coef: Optional[float] = number(at_least=0)
    one_step_coef: Optional[float] = number(at_least=0)
    supervised_coef: Optional[float] = number(at_least=0)
    l2_coef: Optional[float] = number(at_least=0)
    margin: float = number(at_least=0)


@dataclass
class DQfDConfig(DQNConfig):
    """Deep Q-learning from demonstrations; see :class:`rlexp.algos.dqfd.DQfD`."""

    demonstrations: str = MISSING
    demonstration_episodes: Optional[int] = number(at_least=1)
    pretrain_updates: int = number(at_least=0)
    agent_bonus: float = number(at_least=0)
    demonstration_bonus: float = number(at_least=0)
    n_step_coef: float = number(at_least=0)
    supervised_coef: float = number(at_least=0)
    margin: float = number(at_least=0)
    l2_coef: float = number(at_least=0)


@dataclass
class BCConfig(RecurrentNetConfig):
    """Behaviour cloning; see :class:`rlexp.algos.bc.BC`."""

    demonstrations: str = MISSING
    demonstration_episodes: Optional[int] = number(at_least=1)
    validation_share: float = number(at_least=0, below=1)
    l2_coef: float = number(at_least=0)
    updates_per_round: int = number(at_least=1)
