"""Actor, critics and target critics of SAC-LSTM, each with LSTMs of its own."""

from __future__ import annotations

from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.type_aliases import Schedule

from rlexp.algos.common.optimizers import fused_adam
from rlexp.algos.common.recurrent_sac import RecurrentSACPolicy, RecurrentState
from rlexp.errors import UsageError
from rlexp.losses.sac import squashed_gaussian
from rlexp.networks.two_branch import RecurrentActor, RecurrentCritic


class SACLSTMPolicy(RecurrentSACPolicy):
    """Two branches in every network: an LSTM over ``(a_{t-1}, o_t)``, and a feed-forward branch over ``o_t``.

    Its recurrent state: hidden and cell state of the LSTM, ``(n_envs, lstm_hidden_size)`` each, and the previous
    action.

    :param observation_space: a vector
    :param action_space: a vector with bounds
    :param lr_schedule: learning rate
    :param actor_units: units of each of the actor's dense layers
    :param critic_units: units of each of the critics' dense layers
    :param lstm_hidden_size: units of every LSTM
    :param shared_critic_lstm: both critics share one LSTM; False: one each
    :param optimizer_class: of all networks
    :param optimizer_kwargs: its arguments except the learning rate; Adam is fused unless they say otherwise
    :param use_sde: must be False
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        actor_units: int = 128,
        critic_units: int = 256,
        lstm_hidden_size: int = 256,
        shared_critic_lstm: bool = False,
        optimizer_class: type[th.optim.Optimizer] = th.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
        use_sde: bool = False,
    ) -> None:
        if use_sde:
            raise UsageError("use_sde: True given, recurrent actors do not support gSDE")
        super().__init__(
            observation_space,
            action_space,
            optimizer_class=optimizer_class,
            optimizer_kwargs=fused_adam(optimizer_class, optimizer_kwargs),
        )
        self.actor_units = actor_units
        self.critic_units = critic_units
        self.lstm_hidden_size = lstm_hidden_size
        self.shared_critic_lstm = shared_critic_lstm
        sizes = (self.observation_dim, self.action_dim)
        critic_arguments = (*sizes, critic_units, lstm_hidden_size, shared_critic_lstm)
        self.actor = RecurrentActor(*sizes, actor_units, lstm_hidden_size)
        self.critic = RecurrentCritic(*critic_arguments)
        self.critic_target = RecurrentCritic(*critic_arguments)
        self.critic_target.load_state_dict(self.critic.state_dict())
        self.critic_target.requires_grad_(False)
        for module in (self.actor, self.critic):
            module.optimizer = self.optimizer_class(  # type: ignore[assignment]
                module.parameters(),
                lr=lr_schedule(1),  # type: ignore[call-arg]
                **self.optimizer_kwargs,
            )

    def initial_state(self, n_envs: int) -> RecurrentState:
        """Return zeros."""
        sizes = (self.lstm_hidden_size, self.lstm_hidden_size, self.action_dim)
        return tuple(th.zeros(n_envs, size, device=self.device) for size in sizes)

    def act(
        self, observations: th.Tensor, state: RecurrentState, starts: th.Tensor, deterministic: bool
    ) -> tuple[th.Tensor, RecurrentState]:
        """Choose actions; see the base class."""
        hidden, cell, previous = state
        mean, log_std, (hidden, cell) = self.actor(
            observations.unsqueeze(0), previous.unsqueeze(0), (hidden.unsqueeze(0), cell.unsqueeze(0))
        )
        mean, log_std = mean.squeeze(0), log_std.squeeze(0)
        after = (hidden.squeeze(0), cell.squeeze(0), previous)
        if deterministic:
            return th.tanh(mean), after
        return squashed_gaussian(mean, log_std, th.randn_like(mean))[0], after

    def update_state(self, state: RecurrentState, actions: th.Tensor) -> RecurrentState:
        """Store the actions as the previous ones of the next step."""
        return (*state[:2], actions)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        names = ("actor_units", "critic_units", "lstm_hidden_size", "shared_critic_lstm")
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "lr_schedule": self._dummy_schedule,
            **{name: getattr(self, name) for name in names},
            "optimizer_class": self.optimizer_class,
            "optimizer_kwargs": self.optimizer_kwargs,
        }
