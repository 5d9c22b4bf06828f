"""A recurrent network: features, previous action and reward, LSTM, head; unrolled over whole sequences at once."""

from __future__ import annotations

from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import preprocess_obs
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, create_mlp
from torch import nn

from rlexp.networks.dueling import DuelingHead

Observations = th.Tensor | dict[str, th.Tensor]


class RecurrentNet(nn.Module):
    """One output per action at every step of a sequence of observations.

    The recurrent state is one flat vector, ``(n, state_size)``: hidden and cell state of every layer. Everything that
    does not depend on the previous step is computed for all steps at once.

    :param observation_space: as the algorithm sees it
    :param n_actions: number of outputs
    :param features_extractor: built for these observations
    :param net_arch: hidden units of the dense layers after the features
    :param lstm_hidden_size: units of the LSTM; 0: none, the network is feed-forward
    :param n_lstm_layers: stacked layers of the LSTM
    :param head_arch: hidden units of the head, of each stream of a dueling one
    :param dueling: separate streams for state value and advantages
    :param previous_action: whether the previous action is an input
    :param previous_reward: whether the previous reward, squashed by tanh, is an input
    :param activation_fn: between dense layers
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        n_actions: int,
        features_extractor: BaseFeaturesExtractor,
        net_arch: list[int],
        lstm_hidden_size: int,
        n_lstm_layers: int,
        head_arch: list[int],
        dueling: bool,
        previous_action: bool,
        previous_reward: bool,
        activation_fn: type[nn.Module],
    ) -> None:
        super().__init__()
        self.observation_space = observation_space
        self.n_actions = n_actions
        self.previous_action = previous_action
        self.previous_reward = previous_reward
        self.features_extractor = features_extractor
        self.encoder = nn.Sequential(
            *create_mlp(features_extractor.features_dim, -1, net_arch, activation_fn)
        )
        size = net_arch[-1] if net_arch else features_extractor.features_dim
        size += n_actions * previous_action + int(previous_reward)
        self.lstm = nn.LSTM(size, lstm_hidden_size, n_lstm_layers) if lstm_hidden_size else None
        self.n_lstm_layers = n_lstm_layers
        self.lstm_hidden_size = lstm_hidden_size
        self.state_size = 2 * n_lstm_layers * lstm_hidden_size
        if self.lstm is not None:
            self._open_forget_gates()
            size = lstm_hidden_size
        self.head: nn.Module = (
            DuelingHead(size, n_actions, head_arch, activation_fn)
            if dueling
            else nn.Sequential(*create_mlp(size, n_actions, head_arch, activation_fn))
        )

    def _open_forget_gates(self) -> None:
        """Initialise the bias of forget gates to 1 (Jozefowicz et al. 2015), so that gradients reach far back."""
        assert self.lstm is not None
        forget = slice(self.lstm_hidden_size, 2 * self.lstm_hidden_size)
        for layer in range(self.n_lstm_layers):
            getattr(self.lstm, f"bias_ih_l{layer}").data[forget] = 1.0
            getattr(self.lstm, f"bias_hh_l{layer}").data[forget] = 0.0

    def forward(
        self, observations: Observations, last_actions: th.Tensor, last_rewards: th.Tensor, states: th.Tensor
    ) -> tuple[th.Tensor, th.Tensor]:
        """Unroll over T observations.

        :param observations: ``(T, n, ...)``, or one such tensor per key
        :param last_actions: before each observation, ``(T, n)`` int64; ``n_actions`` where there is none
        :param last_rewards: that came with each observation, ``(T, n)``
        :param states: before the first observation, ``(n, state_size)``
        :return: outputs ``(T, n, n_actions)`` and states after the last observation
        """
        steps, n = last_actions.shape
        inputs = [self.encoder(self._features(observations))]
        if self.previous_action:
            # The last row, of no action, is all zeros.
            table = th.eye(self.n_actions + 1, self.n_actions, device=last_actions.device)
            inputs.append(table[last_actions.reshape(-1)])
        if self.previous_reward:
            inputs.append(last_rewards.reshape(-1, 1).tanh())
        hidden = th.cat(inputs, dim=1) if len(inputs) > 1 else inputs[0]
        if self.lstm is not None:
            parts = states.reshape(n, 2 * self.n_lstm_layers, -1).transpose(0, 1).contiguous()
            before = (parts[: self.n_lstm_layers], parts[self.n_lstm_layers :])
            outputs, after = self.lstm(hidden.view(steps, n, -1), before)
            hidden = outputs.view(steps * n, -1)
            states = th.cat(after).transpose(0, 1).reshape(n, -1)
        found: th.Tensor = self.head(hidden)
        return found.view(steps, n, -1), states

    def unroll(
        self,
        observations: Observations,
        last_actions: th.Tensor,
        last_rewards: th.Tensor,
        states: th.Tensor,
        has_burn_in: th.Tensor,
        burn_in: int,
    ) -> th.Tensor:
        """Return the outputs after the burn-in, which refreshes the recurrent state without gradient.

        :param observations: ``(T, n, ...)``, or one such tensor per key
        :param last_actions: as in :meth:`forward`, ``(T, n)`` int64
        :param last_rewards: as in :meth:`forward`, ``(T, n)``
        :param states: before time step 0, or, without burn-in, before time step ``burn_in``, ``(n, state_size)``
        :param has_burn_in: bool, ``(n,)``: which sequences have one
        :param burn_in: time steps of burn-in
        :return: ``(T - burn_in, n, n_actions)``
        """
        if burn_in and self.lstm is not None:
            with th.no_grad():
                early = slice(None, burn_in)
                _, refreshed = self(
                    _time_steps(observations, early), last_actions[early], last_rewards[early], states
                )
                states = th.where(has_burn_in[:, None], refreshed, states)
        late = slice(burn_in, None)
        found, _ = self(_time_steps(observations, late), last_actions[late], last_rewards[late], states)
        outputs: th.Tensor = found
        return outputs

    def _features(self, observations: Observations) -> th.Tensor:
        """Return features of all observations, ``(T * n, features_dim)``."""
        if isinstance(observations, dict):
            flat: Any = {key: part.flatten(0, 1) for key, part in observations.items()}
        else:
            flat = observations.flatten(0, 1)
        features: th.Tensor = self.features_extractor(preprocess_obs(flat, self.observation_space))
        return features


def _time_steps(observations: Observations, steps: slice) -> Observations:
    if isinstance(observations, dict):
        return {key: part[steps] for key, part in observations.items()}
    return observations[steps]
