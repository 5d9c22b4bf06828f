"""PPO with an LSTM."""

from __future__ import annotations

from dataclasses import dataclass

from rlexp.algos.ppo.spec import PPOConfig
from rlexp.config.fields import choice, given, layers, number
from rlexp.registry import AlgoSpec


@dataclass
class RecurrentPPOConfig(PPOConfig):
    """Settings of :class:`~rlexp.algos.recurrent_ppo.recurrent_ppo.RecurrentPPO`."""

    policy: str = choice("auto", "MlpLstmPolicy", "CnnLstmPolicy", "MultiInputLstmPolicy")
    lstm_hidden_size: int = number(at_least=1, policy=True)
    n_lstm_layers: int = number(at_least=1, policy=True)
    shared_lstm: bool = given(policy=True)
    enable_critic_lstm: bool = given(policy=True)
    before_lstm: list[int] = layers()
    layer_norm: bool = given()
    critic_trains_lstm: bool = given()


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
