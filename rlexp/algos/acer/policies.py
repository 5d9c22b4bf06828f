"""Policies of ACER: an actor, its moving average, and a critic of Q and V."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, NatureCNN
from stable_baselines3.common.type_aliases import PyTorchObs, Schedule
from torch import nn

from rlexp.algos.acer.replay import Segments
from rlexp.algos.common.base import reject_reset_result
from rlexp.losses.acer import stochastic_dueling
from rlexp.networks.cnn import MinAtarCNN, is_small_image
from rlexp.networks.policies import DistributionPolicy

Array = npt.NDArray[Any]

_NEVER = -1e8  # not -inf, of which zero times would be NaN


class Actor(nn.Module):
    """From features to the numbers that make an action distribution: logits, or means.

    :param features: features extractor, possibly shared with the critic
    :param layers: hidden layers
    :param head: output layer
    :param lstm: recurrent layers before the hidden ones; None: not recurrent
    """

    def __init__(
        self,
        features: BaseFeaturesExtractor,
        layers: nn.Module,
        head: nn.Module,
        lstm: nn.LSTM | None = None,
    ) -> None:
        super().__init__()
        # The LSTM's weights are called memory.* in saved models.
        self.features, self.memory, self.layers, self.head = features, lstm, layers, head

    def forward(self, inputs: th.Tensor) -> th.Tensor:
        """Return ``(N, n_actions)`` or ``(N, d)`` from the input of the hidden layers."""
        output: th.Tensor = self.head(self.layers(inputs))
        return output


class AdvantageNet(nn.Module):
    """``A(x, a)`` of the stochastic dueling network, for many actions in the same states at once.

    The first layer is linear in state and action, so that the part of the state is computed only once.

    :param latent_dim: size of the critic's last hidden layer
    :param action_dim: d
    :param hidden: units of the one hidden layer
    :param activation_fn: after it
    """

    def __init__(self, latent_dim: int, action_dim: int, hidden: int, activation_fn: type[nn.Module]) -> None:
        super().__init__()
        self.of_state = nn.Linear(latent_dim, hidden)
        self.of_action = nn.Linear(action_dim, hidden, bias=False)
        self.head = nn.Sequential(activation_fn(), nn.Linear(hidden, 1))

    def forward(self, latent: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Return ``(m, N)``.

        :param latent: ``(N, latent_dim)``
        :param actions: ``(m, N, d)``
        """
        advantages: th.Tensor = self.head(self.of_state(latent) + self.of_action(actions))
        return advantages.squeeze(-1)


def forbid(logits: th.Tensor, masks: th.Tensor | None) -> th.Tensor:
    """Return logits with which the softmax of forbidden actions is exactly 0.

    :param logits: ``(N, n_actions)``
    :param masks: True where allowed, same shape; None: all are
    """
    return logits if masks is None else logits.masked_fill(~masks, _NEVER)


class ACERPolicy(DistributionPolicy):
    """Stable-Baselines3's actor-critic with the critic and the average actor that ACER needs.

    Discrete: the critic gives ``Q(x, ·)``, and ``V(x) = Σ π(a|x) Q(x, a)``. Continuous: a diagonal Gaussian
    in actions scaled to [-1, 1] where the action space is bounded, and a critic that gives ``V(x)`` and
    ``A(x, a)``.

    :param learn_std: continuous: whether the standard deviations are learned or stay as they are
    :param log_std_init: continuous: logarithm of the initial standard deviation
    :param advantage_hidden: continuous: hidden units of ``A(x, a)``
    :param lstm_hidden_size: recurrent: units of the LSTM
    """

    average: Actor
    average_log_std: nn.Parameter

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        *,
        learn_std: bool = False,
        log_std_init: float = float(np.log(0.3)),
        advantage_hidden: int = 64,
        lstm_hidden_size: int = 64,
        **kwargs: Any,
    ) -> None:
        self.learn_std = learn_std
        self.lstm_hidden_size = lstm_hidden_size
        self.advantage_hidden = advantage_hidden
        super().__init__(observation_space, action_space, lr_schedule, log_std_init=log_std_init, **kwargs)
        space = self.action_space
        # Makes `predict` and the rollout scale actions back; Stable-Baselines3 reserves the argument for gSDE.
        self._squash_output = isinstance(space, spaces.Box) and bool(
            np.isfinite(space.low).all() and np.isfinite(space.high).all()
        )

    @property
    def lstm_state_shape(self) -> tuple[int, int] | None:
        """Shape of a recurrent policy's state, ``(2 * layers, hidden)``; None: not recurrent."""
        return None

    @property
    def discrete(self) -> bool:
        """Whether there is a finite number of actions."""
        return isinstance(self.action_space, spaces.Discrete)

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        latent_dim, space = self.mlp_extractor.latent_dim_vf, self.action_space
        outputs = int(space.n) if isinstance(space, spaces.Discrete) else 1
        self.value_net = nn.Linear(latent_dim, outputs)
        heads: list[nn.Module] = [self.value_net]
        if not self.discrete:
            self.log_std.requires_grad_(self.learn_std)
            dimensions = int(np.prod(space.shape or ()))
            self.advantage_net = AdvantageNet(
                latent_dim, dimensions, self.advantage_hidden, self.activation_fn
            )
            heads.append(self.advantage_net)
        if self.ortho_init:
            for head in heads:
                head.apply(partial(self.init_weights, gain=1))
        self.trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        optimizer_class: Any = self.optimizer_class
        self.optimizer = optimizer_class(self.trained, lr=lr_schedule(1), **self.optimizer_kwargs)
        self._make_average()

    def _make_average(self) -> None:
        """Copy the actor, after the optimizer was built: the copy is not optimized."""
        actor = self._own_actor()
        self.average = copy.deepcopy(actor).requires_grad_(False)
        pairs = list(zip(self.average.parameters(), actor.parameters(), strict=True))
        if not self.discrete:
            self.average_log_std = nn.Parameter(self.log_std.detach().clone(), requires_grad=False)
            pairs.append((self.average_log_std, self.log_std))
        # Plain lists: as modules they would be saved twice.
        self._followers: list[th.Tensor] = [slow for slow, _ in pairs]
        self._followed: list[th.Tensor] = [fast for _, fast in pairs]

    def _own_actor(self) -> Actor:
        return Actor(self.pi_features_extractor, self.mlp_extractor.policy_net, self.action_net)

    @th.no_grad()
    def update_average(self, decay: float) -> None:
        """Move the average actor: ``θ_a <- α θ_a + (1 - α) θ``."""
        th._foreach_lerp_(self._followers, [fast.detach() for fast in self._followed], 1 - decay)

    # ----------------------------------------------------------------------------------------------- networks

    def _features(self, observations: th.Tensor, extractor: BaseFeaturesExtractor) -> th.Tensor:
        """Return features of raw observations: scaled if they are images, one-hot if they are numbers."""
        # Stable-Baselines3's actor-critic would run the critic's extractor, too, where they share none.
        features: th.Tensor = super(ActorCriticPolicy, self).extract_features(observations, extractor)
        return features

    def actor(self, observations: th.Tensor) -> th.Tensor:
        """Return logits ``(N, n_actions)`` or means ``(N, d)`` of raw observations."""
        features = self._features(observations, self.pi_features_extractor)
        output: th.Tensor = self.action_net(self.mlp_extractor.forward_actor(features))
        return output

    def average_actor(self, observations: th.Tensor) -> th.Tensor:
        """Return what :meth:`actor` returns, of the average policy."""
        return self.average(self._features(observations, self.average.features))  # type: ignore[no-any-return]

    def critic_latent(self, observations: th.Tensor) -> th.Tensor:
        """Return the critic's last hidden layer, ``(N, latent)``."""
        features = self._features(observations, self.vf_features_extractor)
        return self.mlp_extractor.forward_critic(features)

    def actor_and_critic_latent(self, observations: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return :meth:`actor` and :meth:`critic_latent`, shared features extracted only once."""
        if not self.share_features_extractor:
            return self.actor(observations), self.critic_latent(observations)
        features = self._features(observations, self.features_extractor)
        return (
            self.action_net(self.mlp_extractor.forward_actor(features)),
            self.mlp_extractor.forward_critic(features),
        )

    def evaluate_sequence(self, segments: Segments) -> tuple[th.Tensor, th.Tensor]:
        """Return statistics and the critic's last hidden layer in every state of :meth:`Segments.states`.

        :return: logits, those of forbidden actions so low that nothing is left of them, or means; and
            ``(N, latent)``
        """
        statistics, latent = self.actor_and_critic_latent(segments.states())
        return forbid(statistics, segments.allowed()), latent

    def evaluate_average(self, segments: Segments) -> th.Tensor:
        """Return the average policy's statistics in the first ``T * B`` of these states."""
        masks = None if segments.masks is None else segments.masks[:-1].flatten(0, 1)
        return forbid(self.average_actor(segments.observations[:-1].flatten(0, 1)), masks)

    def step(
        self, observations: th.Tensor, lstm_states: th.Tensor | None = None, starts: th.Tensor | None = None
    ) -> tuple[th.Tensor, th.Tensor | None]:
        """Return :meth:`actor` for acting, and the recurrent state after it.

        :param observations: ``(N, *observation)``
        :param lstm_states: ``(2 * layers, N, hidden)``, before the step; None: zeros
        :param starts: ``(N,)`` bool: where an episode begins, so that the state is reset
        """
        return self.actor(observations), None

    @th.no_grad()
    def act(
        self,
        observations: th.Tensor,
        lstm_states: th.Tensor | None = None,
        starts: th.Tensor | None = None,
        masks: th.Tensor | None = None,
    ) -> tuple[Array, Array, th.Tensor | None]:
        """Sample actions.

        :param observations: ``(N, *observation)``
        :param lstm_states: as in :meth:`step`
        :param starts: as in :meth:`step`
        :param masks: ``(N, n_actions)`` bool: which actions are allowed; None: all
        :return: actions, ``(N,)`` or ``(N, d)``; the distribution they were sampled from: log-probabilities of
            all actions, ``(N, n_actions)``, or mean and log σ, ``(N, 2d)``; the recurrent state after the step
        """
        output, lstm_states = self.step(observations, lstm_states, starts)
        if self.discrete:
            behaviour = forbid(output, masks).log_softmax(dim=-1)
            actions = th.multinomial(behaviour.exp(), 1).squeeze(-1)
        else:
            behaviour = th.cat([output, self.log_std.expand_as(output)], dim=-1)
            actions = self.sample(output)
        return actions.cpu().numpy(), behaviour.cpu().numpy(), lstm_states

    def sample(self, statistics: th.Tensor, shape: tuple[int, ...] = ()) -> th.Tensor:
        """Sample continuous actions, ``(*shape, N, d)``.

        :param statistics: means, ``(N, d)``
        :param shape: how many for each mean
        """
        noise = th.randn((*shape, *statistics.shape), device=statistics.device)
        return statistics + noise * self.log_std.exp()

    # ------------------------------------------------------------------------- Stable-Baselines3's interface

    def predict_values(self, obs: PyTorchObs) -> th.Tensor:
        """Return ``V(x)``, ``(N, 1)``."""
        assert isinstance(obs, th.Tensor)
        statistics, latent = self.actor_and_critic_latent(obs)
        values: th.Tensor = self.value_net(latent)
        if self.discrete:
            values = (statistics.softmax(dim=-1) * values).sum(dim=-1, keepdim=True)
        return values

    def action_values(
        self, obs: th.Tensor, actions: th.Tensor, n_samples: int = 5, dueling: bool = True
    ) -> th.Tensor:
        """Return ``Q(x, a)``: exact for discrete actions, else one sample of ``Q̃(x, a)``.

        :param obs: ``(N, *observation)``
        :param actions: ``(N,)`` or, scaled as the policy's own, ``(N, d)``
        :param n_samples: n of the stochastic dueling network
        :param dueling: as in :class:`~rlexp.algos.acer.acer.ACER`
        :return: ``(N,)``
        """
        statistics, latent = self.actor_and_critic_latent(obs)
        if self.discrete:
            values: th.Tensor = self.value_net(latent)
            return values.gather(-1, actions.long().reshape(-1, 1)).squeeze(-1)
        draws = self.sample(statistics.detach(), (n_samples,))
        return self.dueling_values(latent, actions.unsqueeze(0), draws, dueling)[1].squeeze(0)

    def dueling_values(
        self, latent: th.Tensor, actions: th.Tensor, draws: th.Tensor, dueling: bool = True
    ) -> tuple[th.Tensor, th.Tensor]:
        """Return ``V(x)`` of shape ``(N,)`` and ``Q̃(x, a)`` of shape ``(m, N)``.

        :param latent: of the critic, ``(N, latent)``
        :param actions: ``(m, N, d)``
        :param draws: ``u_i`` from the policy, ``(n, N, d)``
        :param dueling: False: two separate heads, Q not tied to V
        """
        values = self.value_net(latent).squeeze(-1)
        if not dueling:
            return values, self.advantage_net(latent, actions)
        advantages = self.advantage_net(latent, th.cat([actions, draws]))
        return values, stochastic_dueling(values, advantages[: len(actions)], advantages[len(actions) :])

    def get_distribution(self, obs: PyTorchObs) -> Distribution:
        """Return the distribution that actions are sampled from."""
        assert isinstance(obs, th.Tensor)
        output = self.actor(obs)
        if self.discrete:
            return self.action_dist.proba_distribution(action_logits=output)
        return self.action_dist.proba_distribution(output, self.log_std)

    def _predict(self, observation: PyTorchObs, deterministic: bool = False) -> th.Tensor:
        assert isinstance(observation, th.Tensor)
        return self._choose(self.actor(observation), deterministic)

    def _choose(self, statistics: th.Tensor, deterministic: bool) -> th.Tensor:
        if self.discrete:
            chosen = self.action_dist.proba_distribution(action_logits=statistics)
            return chosen.get_actions(deterministic=deterministic)
        actions = statistics if deterministic else self.sample(statistics)
        return actions.clamp(-1, 1) if self._squash_output else actions

    @th.no_grad()
    def predict(
        self,
        observation: npt.NDArray[Any] | dict[str, npt.NDArray[Any]],
        state: tuple[Array, ...] | None = None,
        episode_start: Array | None = None,
        deterministic: bool = False,
        action_masks: Array | None = None,
    ) -> tuple[Array, tuple[Array, ...] | None]:
        """Return actions for the environment, and the recurrent state.

        :param observation: of one environment or of several
        :param state: what the last call returned; None: zeros
        :param episode_start: bool, one each: where an episode begins
        :param deterministic: the most probable action, or the mean
        :param action_masks: bool, ``(n_actions,)`` each: which actions are allowed
        """
        reject_reset_result(observation)
        self.set_training_mode(False)
        tensor, several = self.obs_to_tensor(observation)
        assert isinstance(tensor, th.Tensor)
        lstm_states = None if state is None else th.as_tensor(np.concatenate(state), device=self.device)
        starts = None if episode_start is None else th.as_tensor(np.array(episode_start), device=self.device)
        statistics, lstm_states = self.step(tensor, lstm_states, starts)
        if action_masks is not None:
            allowed = th.as_tensor(np.asarray(action_masks, dtype=bool), device=self.device)
            statistics = forbid(statistics, allowed.reshape(statistics.shape))
        shape = self.action_space.shape or ()
        actions = self._choose(statistics, deterministic).cpu().numpy().reshape(-1, *shape)
        if isinstance(self.action_space, spaces.Box):
            if self.squash_output:
                actions = self.unscale_action(actions)
            else:
                actions = actions.clip(self.action_space.low, self.action_space.high)
        after = state if lstm_states is None else tuple(part.cpu().numpy() for part in lstm_states.chunk(2))
        return (actions if several else actions.squeeze(axis=0)), after

    def _get_constructor_parameters(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("learn_std", "advantage_hidden", "lstm_hidden_size")}
        return {**super()._get_constructor_parameters(), **own}


class ACERCnnPolicy(ACERPolicy):
    """:class:`ACERPolicy` for images: the layers of Mnih et al. 2015, or MinAtar's where those do not fit."""

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        lr_schedule: Schedule,
        *,
        features_extractor_class: type[BaseFeaturesExtractor] | None = None,
        **kwargs: Any,
    ) -> None:
        if features_extractor_class is None:
            features_extractor_class = MinAtarCNN if is_small_image(observation_space) else NatureCNN
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            features_extractor_class=features_extractor_class,
            **kwargs,
        )
