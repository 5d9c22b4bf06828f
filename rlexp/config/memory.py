"""What SAC-LSTM and SLAC can be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from rlexp.config.fields import automatic, choice, given, number

# OmegaConf reads these annotations at run time and knows Optional[...], not the bar notation.
# ruff: noqa: UP045


@dataclass
class SACLSTMConfig:
    """Soft actor-critic with LSTMs; see :class:`rlexp.algos.sac_lstm.SACLSTM`."""

    name: str = given()
    actor_units: int = number(at_least=1)
    critic_units: int = number(at_least=1)
    lstm_units: int = number(at_least=1)
    shared_critic_lstm: bool = given()
    learning_rate: float = number(above=0)
    buffer_size: int = number(at_least=1)
    learning_starts: int = number(at_least=0)
    batch_size: int = number(at_least=1)
    length: int = number(at_least=1)
    burn_in: int = number(at_least=0)
    tau: float = number(above=0, at_most=1)
    gamma: float = number(above=0, at_most=1)
    train_freq: int = number(at_least=1)
    gradient_steps: int = number(at_least=-1)
    max_grad_norm: Optional[float] = number(above=0)
    ent_coef: Any = automatic("auto, auto_0.1, 0.1", at_least=0)
    target_entropy: Any = automatic("auto, -1.0")


@dataclass
class SLACConfig:
    """Stochastic latent actor-critic; see :class:`rlexp.algos.slac.SLAC`."""

    name: str = given()
    z1_dim: int = number(at_least=1)
    z2_dim: int = number(at_least=1)
    model_arch: list[int] = field(default_factory=list)
    model_activation: str = choice("ReLU", "Tanh", "ELU", "LeakyReLU", "GELU", "SiLU")
    net_arch: list[int] = field(default_factory=list)
    activation_fn: str = choice("ReLU", "Tanh", "ELU", "LeakyReLU", "GELU", "SiLU")
    separate_std: bool = given()
    variant: str = choice("elbo", "han", "lee")
    length: int = number(at_least=1)
    actor_kind: str = choice("stack", "lstm")
    actor_history: str = choice("obs", "obs_act")
    pad: str = choice("zero", "repeat")
    actor_units: int = number(at_least=1)
    lstm_units: int = number(at_least=1)
    actor_burn_in: int = number(at_least=0)
    critic_kind: str = choice("v", "q_target")
    critic_input: str = choice("z2", "z")
    rl_positions: str = choice("last", "all")
    learning_rate: float = number(above=0)
    model_learning_rate: float = number(above=0)
    buffer_size: int = number(at_least=1)
    learning_starts: int = number(at_least=0)
    pretraining: int = number(at_least=0)
    divergence_warmup: int = number(at_least=0)
    standardize: bool = given()
    batch_size: int = number(at_least=1)
    tau: float = number(above=0, at_most=1)
    gamma: float = number(above=0, at_most=1)
    train_freq: int = number(at_least=1)
    gradient_steps: int = number(at_least=-1)
    max_grad_norm: Optional[float] = number(above=0)
    ent_coef: Any = automatic("auto, auto_0.1, 0.1", at_least=0)
    target_entropy: Any = automatic("auto, -1.0")
