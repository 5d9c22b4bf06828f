"""Stochastic latent actor-critic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from rlexp.algos.common.config import ACTIVATIONS, SoftActorCriticConfig
from rlexp.config.fields import choice, layers, number, required
from rlexp.registry import AlgoSpec

# OmegaConf reads these annotations at run time and supports Optional[...] only, not the bar notation.
# ruff: noqa: UP045


@dataclass
class SLACConfig(SoftActorCriticConfig):
    """Settings of :class:`~rlexp.algos.slac.slac.SLAC`."""

    z1_dim: int = number(at_least=1, policy=True)
    z2_dim: int = number(at_least=1, policy=True)
    model_arch: list[int] = layers(policy=True)
    model_activation: str = choice(*ACTIVATIONS, policy=True)
    net_arch: list[int] = layers(policy=True)
    activation_fn: str = choice(*ACTIVATIONS, policy=True)
    separate_std: bool = required(policy=True)
    variant: str = choice("elbo", "han", "lee")
    sequence_length: int = number(at_least=1, formerly="length")
    actor_kind: str = choice("stack", "lstm", policy=True)
    actor_history: str = choice("obs", "obs_act", policy=True)
    pad: str = choice("zero", "repeat", policy=True)
    actor_units: int = number(at_least=1, policy=True)
    lstm_hidden_size: int = number(at_least=1, policy=True, formerly="lstm_units")
    actor_burn_in: int = number(at_least=0)
    critic_kind: str = choice("v", "q_target", policy=True)
    critic_input: str = choice("z2", "z", policy=True)
    rl_positions: str = choice("last", "all")
    model_learning_rate: float = number(above=0, policy=True)
    pretrain_updates: int = number(at_least=0, formerly="pretraining")
    divergence_warmup: int = number(at_least=0)
    standardize: bool = required()
    max_grad_norm: Optional[float] = number(above=0)


SPECS = (
    AlgoSpec(
        "slac",
        "rlexp.algos.slac.slac:SLAC",
        "Stochastic latent actor-critic (Lee et al. 2020)",
        actions=("continuous",),
        observations=("vector",),
        config=SLACConfig,
    ),
)
