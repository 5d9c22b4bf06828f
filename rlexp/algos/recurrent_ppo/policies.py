"""One network for actor and critic: layers, an LSTM, and two linear heads that both train all of it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch as th
from sb3_contrib.common.recurrent.policies import (
    RecurrentActorCriticCnnPolicy,
    RecurrentActorCriticPolicy,
    RecurrentMultiInputActorCriticPolicy,
)
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, create_mlp
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from rlexp.networks.layer_norm_lstm import LayerNormLSTM


class Layers(BaseFeaturesExtractor):
    """What comes before the LSTM.

    :param observation_space: a vector
    :param units: of each layer
    :param activation_fn: after each
    """

    def __init__(
        self, observation_space: gymnasium.Space[Any], units: list[int], activation_fn: type[nn.Module]
    ) -> None:
        size = int(np.prod(observation_space.shape or ()))
        super().__init__(observation_space, units[-1] if units else size)
        layers = create_mlp(size, units[-1], units[:-1], activation_fn) if units else []
        self.layers = nn.Sequential(nn.Flatten(), *layers, *([activation_fn()] if units else []))

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Return features, ``(n, features_dim)``."""
        found: th.Tensor = self.layers(observations)
        return found


class MlpLstmPolicy(RecurrentActorCriticPolicy):
    """sb3-contrib's; what ``save`` writes holds the LSTM's sizes, too, so that ``load`` builds the same policy."""

    def _get_constructor_parameters(self) -> dict[str, Any]:
        layers, _, units = self.lstm_hidden_state_shape
        return {
            **super()._get_constructor_parameters(),
            "lstm_hidden_size": units,
            "n_lstm_layers": layers,
            "shared_lstm": self.shared_lstm,
            "enable_critic_lstm": self.enable_critic_lstm,
            "lstm_kwargs": self.lstm_kwargs,
        }


class CnnLstmPolicy(MlpLstmPolicy, RecurrentActorCriticCnnPolicy):
    """The same for images."""


class MultiInputLstmPolicy(MlpLstmPolicy, RecurrentMultiInputActorCriticPolicy):
    """The same for dictionaries."""


class SharedLstmPolicy(MlpLstmPolicy):
    """sb3-contrib's shared LSTM, but the critic's gradient reaches it, as in Stable-Baselines 2.

    :param before_lstm: units of the layers before the LSTM
    :param layer_norm: normalise the LSTM's layers
    :param critic_trains_lstm: False: as in sb3-contrib, the critic's gradient ends where the LSTM begins
    :param kwargs: as in sb3-contrib
    """

    def __init__(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        lr_schedule: Schedule,
        *args: Any,
        before_lstm: list[int] | None = None,
        layer_norm: bool = True,
        critic_trains_lstm: bool = True,
        **kwargs: Any,
    ) -> None:
        kwargs |= {"shared_lstm": True, "enable_critic_lstm": False}
        kwargs["features_extractor_class"] = Layers
        kwargs["features_extractor_kwargs"] = {
            "units": list(before_lstm or []),
            "activation_fn": kwargs.get("activation_fn", nn.Tanh),
        }
        super().__init__(observation_space, action_space, lr_schedule, *args, **kwargs)
        self.before_lstm = list(before_lstm or [])
        self.layer_norm = layer_norm
        self.critic_trains_lstm = critic_trains_lstm
        if layer_norm:
            self.lstm_actor = LayerNormLSTM(  # type: ignore[assignment]
                self.features_dim, self.lstm_output_dim
            )
            kwargs = {"lr": lr_schedule(1), **self.optimizer_kwargs}
            self.optimizer = self.optimizer_class(self.parameters(), **kwargs)

    def _latent(self, obs: Any, states: Any, episode_starts: th.Tensor) -> tuple[th.Tensor, Any]:
        features = super(ActorCriticPolicy, self).extract_features(obs, self.pi_features_extractor)
        return self._process_sequence(features, states, episode_starts, self.lstm_actor)

    def _value(self, latent: th.Tensor) -> th.Tensor:
        features = latent if self.critic_trains_lstm else latent.detach()
        value: th.Tensor = self.value_net(self.mlp_extractor.forward_critic(features))
        return value

    def forward(  # type: ignore[override]
        self, obs: th.Tensor, lstm_states: RNNStates, episode_starts: th.Tensor, deterministic: bool = False
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor, RNNStates]:
        """Return actions, values, log-probabilities and the states after."""
        latent, states = self._latent(obs, lstm_states.pi, episode_starts)
        distribution = self._get_action_dist_from_latent(self.mlp_extractor.forward_actor(latent))
        actions = distribution.get_actions(deterministic=deterministic)
        shaped = actions.reshape((-1, *(self.action_space.shape or ())))
        return shaped, self._value(latent), distribution.log_prob(actions), RNNStates(states, states)

    def predict_values(  # type: ignore[override]
        self, obs: th.Tensor, lstm_states: tuple[th.Tensor, th.Tensor], episode_starts: th.Tensor
    ) -> th.Tensor:
        """Return values, ``(n, 1)``."""
        return self._value(self._latent(obs, lstm_states, episode_starts)[0])

    def evaluate_actions(  # type: ignore[override]
        self, obs: th.Tensor, actions: th.Tensor, lstm_states: RNNStates, episode_starts: th.Tensor
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor | None]:
        """Return values, and log-probabilities and entropy under the present policy."""
        latent, _ = self._latent(obs, lstm_states.pi, episode_starts)
        distribution = self._get_action_dist_from_latent(self.mlp_extractor.forward_actor(latent))
        return self._value(latent), distribution.log_prob(actions), distribution.entropy()

    def _get_constructor_parameters(self) -> dict[str, Any]:
        own = ("before_lstm", "layer_norm", "critic_trains_lstm")
        return {**super()._get_constructor_parameters(), **{name: getattr(self, name) for name in own}}
