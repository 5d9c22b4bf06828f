"""Soft actor-critic with an LSTM in the actor and in each critic, trained on sequences sampled from a flat buffer."""

from __future__ import annotations

from typing import Any, ClassVar

import torch as th
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule

from rlexp.algos.common.recurrent_sac import RecurrentSAC
from rlexp.algos.sac_lstm.policies import SACLSTMPolicy
from rlexp.algos.sac_lstm.spec import SACLSTMConfig
from rlexp.buffers.sequence_replay import SequenceBatch
from rlexp.losses.sac import actor_loss, critic_loss, soft_targets, soft_values, squashed_gaussian
from rlexp.networks.two_branch import RecurrentActor, RecurrentCritic, frozen


class SACLSTM(RecurrentSAC):
    """SAC with LSTMs: ``SACLSTM("MlpPolicy", env).learn(10_000)``; defaults are those of Biemann et al. 2021.

    Every network has an LSTM of its own, whose state is zero at the beginning of a sequence, burn-in included; no
    state is stored. An update goes in the order of Stable-Baselines3's SAC: entropy coefficient, critics,
    then the actor against the critics just updated.

    :param policy: "MlpPolicy", or a subclass of :class:`SACLSTMPolicy`
    :param env: actions and observations in one vector each
    :param learning_rate: of all optimizers
    :param buffer_size: steps in the replay buffer, of all environments together
    :param learning_starts: steps at random before the first update
    :param batch_size: sequences per update
    :param sequence_length: steps of a sequence to learn from
    :param burn_in: steps before them, to warm up the recurrent states; gradients pass through them
    :param tau: fraction by which the target critics move towards the critics at an update
    :param max_grad_norm: gradients of actor and critics are clipped to this norm; None: not clipped
    :param sac: every other argument of Stable-Baselines3's ``SAC`` but those on the replay buffer, n-step returns and
        gSDE
    :raises UsageError: when a setting or a space cannot work
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": SACLSTMPolicy}
    config = SACLSTMConfig
    policy: SACLSTMPolicy
    actor: RecurrentActor  # type: ignore[assignment]
    critic: RecurrentCritic  # type: ignore[assignment]
    critic_target: RecurrentCritic  # type: ignore[assignment]

    def __init__(
        self,
        policy: str | type[SACLSTMPolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule = 3e-4,
        buffer_size: int = 1_000_000,
        learning_starts: int = 1000,
        batch_size: int = 16,
        sequence_length: int = 20,
        burn_in: int = 0,
        tau: float = 0.01,
        max_grad_norm: float | None = None,
        **sac: Any,
    ) -> None:
        self.sequence_length = sequence_length
        self.burn_in = burn_in
        super().__init__(
            policy,
            env,
            learning_rate=learning_rate,
            buffer_size=buffer_size,
            learning_starts=learning_starts,
            batch_size=batch_size,
            tau=tau,
            max_grad_norm=max_grad_norm,
            replay_buffer_kwargs={"length": sequence_length, "burn_in": burn_in},
            **sac,
        )

    def train(self, gradient_steps: int, batch_size: int = 16) -> None:
        """Do some updates, each on a batch of its own."""
        self.policy.set_training_mode(True)
        optimizers: list[Any] = [self.actor.optimizer, self.critic.optimizer]
        if self.ent_coef_optimizer is not None:
            optimizers.append(self.ent_coef_optimizer)
        self._update_learning_rate(optimizers)
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample_sequences(batch_size, env=self._vec_normalize_env)
            ent_coef = self._ent_coef()
            actions, log_probs = self.sample_actions(batch)
            self._update_ent_coef(log_probs[:-1], batch.mask)
            value_loss = self.critic_loss(batch, actions, log_probs, ent_coef)
            self._descend(self.critic, value_loss)
            policy_loss = self.actor_loss(batch, actions, log_probs, ent_coef)
            self._descend(self.actor, policy_loss)
            self._update_target(self.critic, self.critic_target)
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record_mean("train/ent_coef", ent_coef.item())
        self.logger.record_mean("train/actor_loss", policy_loss.item())
        self.logger.record_mean("train/critic_loss", value_loss.item())

    def sample_actions(self, batch: SequenceBatch) -> tuple[th.Tensor, th.Tensor]:
        """Sample the actor's action at every observation of some sequences.

        Both losses use the same sample: as the action of its own step and as the next action of the step before.

        :param batch: sequences of the buffer, ``T`` steps and ``T + 1`` observations
        :return: actions, ``(T + 1, n, action_dim)``, and their log-densities, ``(T + 1, n)``
        """
        mean, log_std, _ = self.actor(batch.observations, batch.previous_actions)
        return squashed_gaussian(mean, log_std, th.randn_like(mean))

    def critic_loss(
        self, batch: SequenceBatch, actions: th.Tensor, log_probs: th.Tensor, ent_coef: th.Tensor
    ) -> th.Tensor:
        """Return the critics' loss; its gradient reaches the critics alone.

        :param batch: sequences of the buffer
        :param actions: of :meth:`sample_actions`; likewise ``log_probs``
        :param ent_coef: the entropy coefficient
        """
        observations, previous_actions = batch.observations, batch.previous_actions
        with th.no_grad():
            history = self.critic_target.encode_history(observations, previous_actions)
            following = self.critic_target(history, observations, actions)
            values = soft_values(following, log_probs, ent_coef)[1:]
            targets = soft_targets(batch.rewards, batch.terminals, self.gamma, values)
        history = self.critic.encode_history(observations[:-1], previous_actions[:-1])
        return critic_loss(self.critic(history, observations[:-1], batch.actions), targets, batch.mask)

    def actor_loss(
        self, batch: SequenceBatch, actions: th.Tensor, log_probs: th.Tensor, ent_coef: th.Tensor
    ) -> th.Tensor:
        """Return the actor's loss against the current critics; its gradient reaches the actor alone.

        :param batch: sequences of the buffer
        :param actions: of :meth:`sample_actions`; likewise ``log_probs``
        :param ent_coef: the entropy coefficient
        """
        observations = batch.observations[:-1]
        with th.no_grad():
            history = self.critic.encode_history(observations, batch.previous_actions[:-1])
        with frozen(self.critic):
            action_values = self.critic(history, observations, actions[:-1])
        return actor_loss(action_values, log_probs[:-1], ent_coef, batch.mask)
