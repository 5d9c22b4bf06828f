"""Soft actor-critic with LSTMs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from rlexp.algos.common.config import SoftActorCriticConfig
from rlexp.config.fields import number, required
from rlexp.registry import AlgoSpec

# OmegaConf reads these annotations at run time and supports Optional[...] only, not the bar notation.
# ruff: noqa: UP045


@dataclass
class SACLSTMConfig(SoftActorCriticConfig):
    """Settings of :class:`~rlexp.algos.sac_lstm.sac_lstm.SACLSTM`."""

    actor_units: int = number(at_least=1, policy=True)
    critic_units: int = number(at_least=1, policy=True)
    lstm_hidden_size: int = number(at_least=1, policy=True, formerly="lstm_units")
    shared_critic_lstm: bool = required(policy=True)
    sequence_length: int = number(at_least=1, formerly="length")
    burn_in: int = number(at_least=0)
    max_grad_norm: Optional[float] = number(above=0)


SPECS = (
    AlgoSpec(
        "sac_lstm",
        "rlexp.algos.sac_lstm.sac_lstm:SACLSTM",
        "Soft actor-critic with LSTMs, for partially observable environments",
        actions=("continuous",),
        observations=("vector",),
        unsupported=("net_arch",),
        config=SACLSTMConfig,
    ),
)
