"""A recurrent policy: an online and a target network, and acting with a recurrent state."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import nn

from rlexp.algos.common.base import reject_reset_result
from rlexp.algos.common.optimizers import fused_adam
from rlexp.networks.encoder import extractor_for
from rlexp.networks.recurrent import RecurrentNet

Array = npt.NDArray[Any]
State = tuple[Array, ...]


class RecurrentPolicy(BasePolicy):
    """Greedy over the outputs of a :class:`RecurrentNet`.

    :param observation_space: vectors, images, or a dictionary
    :param action_space: Discrete
    :param lr_schedule: as in Stable-Baselines3
    :param net_arch: hidden units of the layers between the features and the LSTM; None: [64]
    :param lstm_hidden_size: units of the LSTM; 0: none
    :param n_lstm_layers: layers of the LSTM
    :param head_arch: hidden units of the layers after the LSTM, of each stream; None: none
    :param dueling: separate streams for state value and advantages
    :param previous_action: whether the network reads the action taken before the observation
    :param previous_reward: whether it reads the reward that came with the observation, through tanh
    :param with_target: whether there is a target network
    :param activation_fn: between layers
    :param features_extractor_class: None: chosen by the observations
    :param features_extractor_kwargs: its arguments
    :param optimizer_class: of all networks
    :param optimizer_kwargs: its arguments except the learning rate; Adam is fused unless they say otherwise
    """

    action_space: spaces.Discrete

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Discrete,
        lr_schedule: Schedule,
        net_arch: list[int] | None = None,
        lstm_hidden_size: int = 64,
        n_lstm_layers: int = 1,
        head_arch: list[int] | None = None,
        dueling: bool = True,
        previous_action: bool = True,
        previous_reward: bool = True,
        with_target: bool = True,
        activation_fn: type[nn.Module] = nn.ReLU,
        features_extractor_class: type[BaseFeaturesExtractor] | None = None,
        features_extractor_kwargs: dict[str, Any] | None = None,
        optimizer_class: type[th.optim.Optimizer] = th.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            observation_space,
            action_space,
            features_extractor_class=features_extractor_class or extractor_for(observation_space),
            features_extractor_kwargs=features_extractor_kwargs,
            optimizer_class=optimizer_class,
            optimizer_kwargs=fused_adam(optimizer_class, optimizer_kwargs),
        )
        self._net_arguments: dict[str, Any] = {
            "net_arch": [64] if net_arch is None else net_arch,
            "lstm_hidden_size": lstm_hidden_size,
            "n_lstm_layers": n_lstm_layers,
            "head_arch": [] if head_arch is None else head_arch,
            "dueling": dueling,
            "previous_action": previous_action,
            "previous_reward": previous_reward,
            "activation_fn": activation_fn,
        }
        self.q_net = self._make_net()
        self.q_net_target = self._make_net() if with_target else None
        if self.q_net_target is not None:
            self.q_net_target.load_state_dict(self.q_net.state_dict())
            self.q_net_target.requires_grad_(False)
        self.optimizer = self.optimizer_class(
            self.q_net.parameters(),
            lr=lr_schedule(1),  # type: ignore[call-arg]
            **self.optimizer_kwargs,
        )

    def _make_net(self) -> RecurrentNet:
        features = self.make_features_extractor()
        n_actions = int(self.action_space.n)
        return RecurrentNet(self.observation_space, n_actions, features, **self._net_arguments)

    @property
    def state_size(self) -> int:
        """Size of a recurrent state."""
        return self.q_net.state_size

    def set_training_mode(self, mode: bool) -> None:
        """Switch modes; the base class walks through every module even when nothing changes."""
        if mode != self.training:
            super().set_training_mode(mode)

    @th.inference_mode()
    def values(
        self, observations: PyTorchObs, last_actions: Array, last_rewards: Array, states: Array
    ) -> tuple[th.Tensor, Array]:
        """Return the outputs of one step, ``(n, n_actions)``, and the states after it.

        :param observations: ``(n, ...)``
        :param last_actions: ``(n,)``; ``n_actions`` where there is none
        :param last_rewards: ``(n,)``
        :param states: ``(n, state_size)``
        """
        one_step: Any = (
            {key: part[None] for key, part in observations.items()}
            if isinstance(observations, dict)
            else observations[None]
        )
        device = self.device
        found, after = self.q_net(
            one_step,
            th.as_tensor(last_actions, device=device)[None],
            th.as_tensor(last_rewards, device=device, dtype=th.float32)[None],
            th.as_tensor(states, device=device),
        )
        return found[0], after.cpu().numpy()

    def predict(
        self,
        observation: Array | dict[str, Array],
        state: State | None = None,
        episode_start: Array | None = None,
        deterministic: bool = False,
        rewards: Array | None = None,
    ) -> tuple[Array, State | None]:
        """Act as Stable-Baselines3's recurrent policies do; the state includes the previous action.

        :param observation: one, or ``(n, ...)``
        :param state: what the last call returned; None: the beginning of an episode
        :param episode_start: ``(n,)``: where an episode begins, so that the state is reset
        :param deterministic: False: sampled from the softmax of the outputs
        :param rewards: that came with the observations, ``(n,)``; None: 0, which is correct only for networks that do
            not read them
        :return: actions and the new state
        """
        reject_reset_result(observation)
        self.set_training_mode(False)
        tensor, vectorized = self.obs_to_tensor(observation)
        n = len(next(iter(tensor.values())) if isinstance(tensor, dict) else tensor)
        none = int(self.action_space.n)
        if state is None:
            state = (np.zeros((n, self.state_size), np.float32), np.full(n, none))
        states, last_actions = state
        last_rewards = np.zeros(n) if rewards is None else np.asarray(rewards, np.float64).reshape(n)
        if episode_start is not None:
            begins = np.asarray(episode_start, bool).reshape(n)
            states = np.where(begins[:, None], np.float32(0), states)
            last_actions = np.where(begins, none, last_actions)
            last_rewards = np.where(begins, 0.0, last_rewards)
        outputs, states = self.values(tensor, last_actions, last_rewards, states)
        actions = self._choose(outputs, deterministic)
        return (actions if vectorized else actions.squeeze(axis=0)), (states, actions)

    def _choose(self, outputs: th.Tensor, deterministic: bool) -> Array:
        chosen = outputs.argmax(-1) if deterministic else outputs.softmax(-1).multinomial(1).squeeze(-1)
        return np.asarray(chosen.cpu().numpy())

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> th.Tensor:
        raise NotImplementedError("a recurrent policy acts through predict()")

    def _get_constructor_parameters(self) -> dict[str, Any]:
        parameters = super()._get_constructor_parameters()
        del parameters["normalize_images"]  # the features extractors do that
        return {
            **parameters,
            **self._net_arguments,
            "with_target": self.q_net_target is not None,
            "lr_schedule": self._dummy_schedule,
            "features_extractor_class": self.features_extractor_class,
            "features_extractor_kwargs": self.features_extractor_kwargs,
            "optimizer_class": self.optimizer_class,
            "optimizer_kwargs": self.optimizer_kwargs,
        }
