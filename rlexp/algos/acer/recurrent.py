"""Recurrent policies of ACER: one LSTM between the features and the layers of actor and critic.

Segments store the recurrent state of the behaviour policy before their first step. From there the current policy is
unrolled, its state reset where an episode begins. The average actor has an LSTM of its own and starts from the same
state.
"""

from __future__ import annotations

from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import MlpExtractor
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from rlexp.algos.acer.policies import ACERCnnPolicy, ACERPolicy, Actor, forbid
from rlexp.algos.acer.replay import Segments
from rlexp.errors import UsageError
from rlexp.networks.unroll import join, split, unroll


class ACERLstmPolicy(ACERPolicy):
    """Recurrent :class:`ACERPolicy`. Methods that take observations alone treat them as the first of an episode."""

    lstm: nn.LSTM

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        **kwargs: Any,
    ) -> None:
        if not kwargs.get("share_features_extractor", True):
            raise UsageError(
                "share_features_extractor: false given, recurrent policies of ACER share the extractor"
            )
        super().__init__(observation_space, action_space, lr_schedule, **kwargs)

    @property
    def lstm_state_shape(self) -> tuple[int, int]:
        """``(2, hidden)``: hidden and cell state of one layer."""
        return 2, self.lstm_hidden_size

    def _build_mlp_extractor(self) -> None:
        self.lstm = nn.LSTM(self.features_dim, self.lstm_hidden_size)
        self.mlp_extractor = MlpExtractor(
            self.lstm_hidden_size, self.net_arch, activation_fn=self.activation_fn, device=self.device
        )

    def _own_actor(self) -> Actor:
        return Actor(self.features_extractor, self.mlp_extractor.policy_net, self.action_net, self.lstm)

    def _encode(
        self, observations: th.Tensor, lstm_states: th.Tensor | None, starts: th.Tensor | None
    ) -> tuple[th.Tensor, th.Tensor]:
        """Return the LSTM's output, ``(N, hidden)``, and the state after it; see :meth:`step`."""
        features = self._features(observations, self.features_extractor)
        if lstm_states is None:
            lstm_states = features.new_zeros(self.lstm_state_shape[0], len(features), self.lstm_hidden_size)
        if starts is not None:
            lstm_states = lstm_states * (~starts.bool()).to(lstm_states.dtype).view(1, -1, 1)
        output, state = self.lstm(features.unsqueeze(0), split(lstm_states))
        return output.squeeze(0), join(state)

    def step(
        self, observations: th.Tensor, lstm_states: th.Tensor | None = None, starts: th.Tensor | None = None
    ) -> tuple[th.Tensor, th.Tensor | None]:
        """Return logits or means, and the recurrent state after the step."""
        hidden, after = self._encode(observations, lstm_states, starts)
        return self.action_net(self.mlp_extractor.forward_actor(hidden)), after

    def actor(self, observations: th.Tensor) -> th.Tensor:
        """Return logits or means at the beginning of episodes."""
        return self.step(observations)[0]

    def critic_latent(self, observations: th.Tensor) -> th.Tensor:
        """Return the critic's last hidden layer at the beginning of episodes, ``(N, latent)``."""
        return self.actor_and_critic_latent(observations)[1]

    def actor_and_critic_latent(self, observations: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return :meth:`actor` and :meth:`critic_latent`."""
        return self._heads(self._encode(observations, None, None)[0])

    def average_actor(self, observations: th.Tensor) -> th.Tensor:
        """Return what :meth:`actor` returns, of the average policy."""
        assert self.average.memory is not None
        features = self._features(observations, self.average.features)
        output: th.Tensor = self.average(self.average.memory(features.unsqueeze(0))[0].squeeze(0))
        return output

    def evaluate_sequence(self, segments: Segments) -> tuple[th.Tensor, th.Tensor]:
        """Return statistics and the critic's last hidden layer in every state of :meth:`Segments.states`."""
        features = self._features(segments.states(), self.features_extractor)
        inside = features[: len(features) - len(segments.truncation_observations)]
        outputs, at_truncations = unroll(
            self.lstm,
            inside.view(*segments.observations.shape[:2], -1),
            _lstm_states(segments),
            segments.starts(),
            segments.truncations,
            features[len(inside) :],
        )
        statistics, latent = self._heads(th.cat([outputs.flatten(0, 1), at_truncations]))
        return forbid(statistics, segments.allowed()), latent

    def evaluate_average(self, segments: Segments) -> th.Tensor:
        """Return the average policy's statistics in the first ``T * B`` of these states."""
        assert self.average.memory is not None
        acted_in = segments.observations[:-1]
        features = self._features(acted_in.flatten(0, 1), self.average.features)
        outputs, _ = unroll(
            self.average.memory,
            features.view(*acted_in.shape[:2], -1),
            _lstm_states(segments),
            segments.starts()[:-1],
            segments.truncations,
            features[:0],
        )
        masks = None if segments.masks is None else segments.masks[:-1].flatten(0, 1)
        return forbid(self.average(outputs.flatten(0, 1)), masks)

    def _heads(self, hidden: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        layers = self.mlp_extractor
        return self.action_net(layers.forward_actor(hidden)), layers.forward_critic(hidden)


class ACERCnnLstmPolicy(ACERLstmPolicy, ACERCnnPolicy):
    """:class:`ACERLstmPolicy` for images, with the layers of :class:`ACERCnnPolicy`."""


def _lstm_states(segments: Segments) -> th.Tensor:
    assert segments.lstm_states is not None, "segments of a recurrent policy store its state"
    return segments.lstm_states
