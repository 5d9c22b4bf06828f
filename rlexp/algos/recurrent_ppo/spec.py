"""PPO with an LSTM."""

from __future__ import annotations

from dataclasses import dataclass

from rlexp.algos.ppo.spec import PPOConfig
from rlexp.config.fields import choice, layers, number, required
from rlexp.registry import AlgoSpec


@dataclass
class RecurrentPPOConfig(PPOConfig):
    """Settings of :class:`~rlexp.algos.recurrent_ppo.recurrent_ppo.RecurrentPPO`."""

    policy: str = choice("auto", "MlpLstmPolicy", "CnnLstmPolicy", "MultiInputLstmPolicy")
    lstm_hidden_size: int = number(at_least=1, policy=True)
    n_lstm_layers: int = number(at_least=1, policy=True)
    shared_lstm: bool = required(policy=True)
    enable_critic_lstm: bool = required(policy=True)
    before_lstm: list[int] = layers()
    layer_norm: bool = required()
    critic_trains_lstm: bool = required()


SPECS = (
    AlgoSpec(
        "recurrent_ppo",
        "rlexp.algos.recurrent_ppo.recurrent_ppo:RecurrentPPO",
        "PPO with an LSTM (sb3-contrib), layer-normalised on request",
        actions=("discrete", "continuous"),
        observations=("vector", "image", "dict"),
        config=RecurrentPPOConfig,
    ),
)
