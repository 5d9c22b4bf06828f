"""All networks of SLAC: latent model, actor, critics."""

from __future__ import annotations

from typing import Any

import torch as th
from gymnasium import spaces
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from rlexp.algos.common.optimizers import fused_adam
from rlexp.algos.common.recurrent_sac import RecurrentSACPolicy, RecurrentState
from rlexp.algos.slac.networks import LatentCritic, SequenceActor, StackActor
from rlexp.errors import UsageError
from rlexp.losses.sac import squashed_gaussian
from rlexp.networks.latent import LatentModel

_NETWORK_ARGUMENTS = (
    "z1_dim",
    "z2_dim",
    "model_arch",
    "model_activation",
    "net_arch",
    "activation_fn",
    "separate_std",
    "observation_std",
    "sequence_length",
    "actor_kind",
    "actor_history",
    "pad",
    "actor_units",
    "lstm_hidden_size",
    "critic_kind",
    "critic_input",
    "model_learning_rate",
    "optimizer_class",
    "optimizer_kwargs",
)


class SLACPolicy(RecurrentSACPolicy):
    """The actor reads observations alone, so that acting does not need the latent model.

    Recurrent state of a stacking actor: the previous observations and the actions after them; of a recurrent actor: the
    LSTM's state and the previous action.

    :param observation_space: a vector
    :param action_space: a vector with bounds
    :param lr_schedule: learning rate of actor and critics
    :param z1_dim: dimensions of z¹, the lower latent variable
    :param z2_dim: dimensions of z², the upper latent variable
    :param model_arch: hidden units of every network of the latent model
    :param model_activation: name of a class in ``torch.nn``
    :param net_arch: hidden units of actor and critics
    :param activation_fn: between their layers
    :param separate_std: separate networks for standard deviations
    :param observation_std: standard deviation of observations in the latent model; None: learned
    :param sequence_length: observations in the input of a stacking actor
    :param actor_kind: ``"stack"`` or ``"lstm"``
    :param actor_history: ``"obs"`` or ``"obs_act"``: input of a stacking actor
    :param pad: ``"zero"`` or ``"repeat"``: padding before the first observation
    :param actor_units: of a recurrent actor's layers
    :param lstm_hidden_size: of its LSTM
    :param critic_kind: ``"v"``: a state value with a target network; ``"q_target"``: target action values
    :param critic_input: ``"z2"`` or ``"z"``: part of the latent state that critics read
    :param model_learning_rate: of the latent model
    :param optimizer_class: of all networks
    :param optimizer_kwargs: its arguments except the learning rate; Adam is fused unless they say otherwise
    :param use_sde: must be False
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        z1_dim: int = 16,
        z2_dim: int = 32,
        model_arch: list[int] | None = None,
        model_activation: str = "Tanh",
        net_arch: list[int] | None = None,
        activation_fn: type[nn.Module] = nn.ReLU,
        separate_std: bool = False,
        observation_std: float | None = None,
        sequence_length: int = 8,
        actor_kind: str = "stack",
        actor_history: str = "obs",
        pad: str = "zero",
        actor_units: int = 128,
        lstm_hidden_size: int = 256,
        critic_kind: str = "v",
        critic_input: str = "z2",
        model_learning_rate: float = 1e-4,
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
        model_arch = [128, 128] if model_arch is None else list(model_arch)
        net_arch = [256, 256] if net_arch is None else list(net_arch)
        arguments = locals()
        names = (name for name in _NETWORK_ARGUMENTS if not name.startswith("optimizer"))
        self._network_arguments = {name: arguments[name] for name in names}
        self.sequence_length = sequence_length
        self.lstm_hidden_size = lstm_hidden_size
        self.both_levels = critic_input == "z"
        sizes = (self.observation_dim, self.action_dim)
        self.latent = LatentModel(
            *sizes, z1_dim, z2_dim, model_arch, getattr(nn, model_activation), separate_std, observation_std
        )
        self.actor: StackActor | SequenceActor
        if actor_kind == "lstm":
            self.actor = SequenceActor(*sizes, actor_units, lstm_hidden_size)
        else:
            self.actor = StackActor(
                *sizes,
                sequence_length,
                actor_history == "obs_act",
                pad == "repeat",
                net_arch,
                activation_fn,
                separate_std,
            )
        latent_dim = z2_dim + z1_dim * self.both_levels
        critic_sizes = (latent_dim, self.action_dim, net_arch, activation_fn)
        self.critic = LatentCritic(*critic_sizes, with_value=critic_kind == "v")
        target = LatentCritic(*critic_sizes, with_value=critic_kind == "v")
        target.load_state_dict(self.critic.state_dict())
        # Targets bootstrap from the state value if there is one, else from the action values.
        self.critic_target: nn.Module = target if target.value is None else target.value
        self.critic_target.requires_grad_(False)
        rates = (
            (self.actor, lr_schedule(1)),
            (self.critic, lr_schedule(1)),
            (self.latent, model_learning_rate),
        )
        for module, rate in rates:
            module.optimizer = self.optimizer_class(  # type: ignore[assignment]
                module.parameters(),
                lr=rate,  # type: ignore[call-arg]
                **self.optimizer_kwargs,
            )

    def initial_state(self, n_envs: int) -> RecurrentState:
        """Return zeros."""
        if isinstance(self.actor, SequenceActor):
            shapes: list[tuple[int, ...]] = [
                (self.lstm_hidden_size,),
                (self.lstm_hidden_size,),
                (self.action_dim,),
            ]
        else:
            shapes = [
                (self.sequence_length - 1, self.observation_dim),
                (self.sequence_length - 1, self.action_dim),
            ]
        return tuple(th.zeros(n_envs, *shape, device=self.device) for shape in shapes)

    def act(
        self, observations: th.Tensor, state: RecurrentState, starts: th.Tensor, deterministic: bool
    ) -> tuple[th.Tensor, RecurrentState]:
        """Choose actions; see the base class."""
        if isinstance(self.actor, SequenceActor):
            hidden, cell, previous = state
            mean, log_std, (hidden, cell) = self.actor(
                observations.unsqueeze(0), previous.unsqueeze(0), (hidden.unsqueeze(0), cell.unsqueeze(0))
            )
            mean, log_std = mean.squeeze(0), log_std.squeeze(0)
            after: RecurrentState = (hidden.squeeze(0), cell.squeeze(0), previous)
        else:
            past, actions = state
            now = observations.unsqueeze(1)
            if self.actor.repeats:
                past = th.where(starts.view(-1, 1, 1), now.expand_as(past), past)
            stacked = th.cat([past, now], dim=1)
            mean, log_std = self.actor(self.actor.join(stacked, actions))
            after = (stacked[:, 1:], actions)
        if deterministic:
            return th.tanh(mean), after
        return squashed_gaussian(mean, log_std, th.randn_like(mean))[0], after

    def update_state(self, state: RecurrentState, actions: th.Tensor) -> RecurrentState:
        """Store the actions as the previous ones of the next step."""
        if isinstance(self.actor, SequenceActor):
            return (*state[:2], actions)
        past, earlier = state
        return past, th.cat([earlier, actions.unsqueeze(1)], dim=1)[:, 1:]

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "lr_schedule": self._dummy_schedule,
            **self._network_arguments,
            "optimizer_class": self.optimizer_class,
            "optimizer_kwargs": self.optimizer_kwargs,
        }
