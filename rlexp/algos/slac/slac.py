"""Stochastic latent actor-critic: critics read the states of a latent variable model, the actor reads observations."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, RolloutReturn, Schedule
from stable_baselines3.common.vec_env import VecEnv

from rlexp.algos.common.pretraining import pretrain
from rlexp.algos.common.recurrent_sac import RecurrentSAC
from rlexp.algos.slac.networks import LatentCritic, SequenceActor, StackActor, at
from rlexp.algos.slac.policies import SLACPolicy
from rlexp.algos.slac.spec import SLACConfig
from rlexp.buffers.sequence_replay import SequenceBatch
from rlexp.losses.distributions import gaussian_kl, gaussian_log_prob
from rlexp.losses.sac import actor_loss, critic_loss, soft_targets, soft_values, squashed_gaussian
from rlexp.losses.slac import elbo_loss, han_loss
from rlexp.networks.latent import LatentModel, LatentPosterior
from rlexp.networks.two_branch import frozen

_LEE_STD = math.sqrt(0.1)


class RLBatch(NamedTuple):
    """What actor and critics learn from: ``K`` steps of each of ``n`` sequences."""

    latents: th.Tensor
    """What critics read of the latent states, ``(K, n, latent_dim)``."""
    next_latents: th.Tensor
    """The same one step later, ``(K, n, latent_dim)``."""
    actions: th.Tensor
    """Actions taken, ``(K, n, action_dim)``."""
    rewards: th.Tensor
    """``(K, n)``."""
    terminals: th.Tensor
    """``(K, n)``."""
    mask: th.Tensor | None
    """Which steps count, ``(K, n)``; None: all."""
    sampled: th.Tensor
    """Actions sampled from the current actor, ``(K, n, action_dim)``, with gradient."""
    log_probs: th.Tensor
    """Log-densities of the sampled actions, ``(K, n)``."""
    next_sampled: th.Tensor
    """Actions sampled one step later; empty where the critics learn a state value."""
    next_log_probs: th.Tensor
    """Log-densities of these."""


class SLAC(RecurrentSAC):
    """Stochastic latent actor-critic (Lee et al. 2020): ``SLAC("MlpPolicy", env).learn(10_000)``.

    Sizes are those of Biemann et al. 2021. An update samples sequences and updates the latent model; then, with the
    latent states inferred for that, the entropy coefficient, the critics and the actor, in the order of
    Stable-Baselines3's SAC. Their gradients do not reach the model.

    :param policy: "MlpPolicy", or a subclass of :class:`SLACPolicy`
    :param env: actions and observations in one vector each
    :param learning_rate: of actor, critics and entropy coefficient; the model's is in ``policy_kwargs``
    :param buffer_size: steps in the replay buffer, of all environments together
    :param learning_starts: steps at random before the first update
    :param pretrain_updates: updates of the model alone before the first update of actor and critics
    :param divergence_warmup: updates of the model over which the weight of the divergence grows from 0 to 1
    :param standardize: normalize the model's observations and rewards by their mean and standard deviation before the
        first update; without it large ones are modelled as noise, since the learned deviation adapts faster than the
        mean
    :param batch_size: sequences per update
    :param sequence_length: steps of a sequence
    :param actor_burn_in: steps before the sequence that a recurrent actor reads, too
    :param variant: the model's objective. ``"elbo"``: the evidence lower bound; ``"han"``: of Han et al.'s code, each
        term divided by its dimensions, decoders fed with z¹ of the prior; ``"lee"``: of Lee et al.'s code, the bound
        with a fixed standard deviation of observations, without the rewards of terminal steps
    :param rl_positions: steps on which actor and critics are trained: the ``"last"`` of a sequence (Lee) or ``"all"``
        (Han)
    :param tau: fraction by which the target network moves towards its online network at an update
    :param max_grad_norm: gradients of model, actor and critics are clipped to this norm; None: not clipped
    :param policy_kwargs: see :class:`SLACPolicy`
    :param sac: every other argument of Stable-Baselines3's ``SAC`` but those on the replay buffer, n-step returns and
        gSDE
    :raises UsageError: when a setting or a space cannot work
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": SLACPolicy}
    config = SLACConfig
    policy: SLACPolicy
    actor: StackActor | SequenceActor  # type: ignore[assignment]
    critic: LatentCritic  # type: ignore[assignment]
    latent: LatentModel

    def __init__(
        self,
        policy: str | type[SLACPolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule = 3e-4,
        buffer_size: int = 1_000_000,
        learning_starts: int = 1000,
        pretrain_updates: int = 5000,
        divergence_warmup: int = 1000,
        standardize: bool = True,
        batch_size: int = 64,
        sequence_length: int = 8,
        actor_burn_in: int = 40,
        variant: str = "elbo",
        rl_positions: str = "last",
        tau: float = 0.005,
        max_grad_norm: float | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        **sac: Any,
    ) -> None:
        policy_kwargs = {**(policy_kwargs or {}), "sequence_length": sequence_length}
        if variant == "lee":
            policy_kwargs["observation_std"] = _LEE_STD
        self.pretrain_updates = pretrain_updates
        self.divergence_warmup = divergence_warmup
        self.standardize = standardize
        self.sequence_length = sequence_length
        self.actor_burn_in = actor_burn_in
        self.variant = variant
        self.rl_positions = rl_positions
        self._model_updates = 0
        self._rollout: tuple[int, int] | None = None  # steps and episodes of the rollout before pre-training
        recurrent = policy_kwargs.get("actor_kind") == "lstm"
        super().__init__(
            policy,
            env,
            learning_rate=learning_rate,
            buffer_size=buffer_size,
            learning_starts=learning_starts,
            batch_size=batch_size,
            tau=tau,
            max_grad_norm=max_grad_norm,
            policy_kwargs=policy_kwargs,
            replay_buffer_kwargs={
                "length": sequence_length,
                "burn_in": actor_burn_in if recurrent else sequence_length - 1,
                "anchor": "last" if rl_positions == "last" else "any",
            },
            **sac,
        )

    def _create_aliases(self) -> None:
        super()._create_aliases()
        self.latent = self.policy.latent

    # ------------------------------------------------------------------------------------------------ updates

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Do some updates, each on a batch of its own; before the very first, train the model alone."""
        self.policy.set_training_mode(True)
        optimizers: list[Any] = [self.actor.optimizer, self.critic.optimizer]
        if self.ent_coef_optimizer is not None:
            optimizers.append(self.ent_coef_optimizer)
        self._update_learning_rate(optimizers)
        self._pretrain_model(None)
        if self.standardize and self._model_updates == 0:
            self._fit_normalizer()
        for _ in range(gradient_steps):
            batch = self._sample(batch_size)
            sequences = self._without_burn_in(batch)
            model_loss, inferred = self._train_model(sequences)
            latents = (inferred.z if self.policy.both_levels else inferred.z2).detach()
            ent_coef = self._ent_coef()
            rl = self.rl_batch(batch, sequences, latents)
            self._update_ent_coef(rl.log_probs, rl.mask)
            value_loss = self.critic_loss(rl, ent_coef)
            self._descend(self.critic, value_loss)
            policy_loss = self.actor_loss(rl, ent_coef)
            self._descend(self.actor, policy_loss)
            self._update_target(
                self.critic if self.critic.value is None else self.critic.value, self.critic_target
            )
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record_mean("train/ent_coef", ent_coef.item())
        self.logger.record_mean("train/actor_loss", policy_loss.item())
        self.logger.record_mean("train/critic_loss", value_loss.item())
        self.logger.record_mean("train/model_loss", model_loss.item())

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, *args: Any, **kwargs: Any
    ) -> RolloutReturn:
        """Collect steps; before the first update, train the model alone on what has been collected.

        A run can be saved and stopped during this training like at any other time; when it is resumed, the steps of
        this rollout are not collected again.
        """
        if self._rollout is None:
            rollout = super().collect_rollouts(env, callback, *args, **kwargs)
        else:
            rollout = RolloutReturn(*self._rollout, continue_training=True)
        # After the last step of the budget, `learn` is not called again for the update that is due: no stopping before
        # it.
        stoppable = self.num_timesteps < self._total_timesteps
        updates = self.gradient_steps != 0 and self.num_timesteps > self.learning_starts
        if rollout.continue_training and updates and stoppable:
            self._rollout = rollout.episode_timesteps, rollout.n_episodes
            self._pretrain_model(callback)
        self._rollout = None
        return rollout

    def _pretrain_model(self, callback: BaseCallback | None) -> None:
        pretrain(self.pretrain_updates, lambda: self._model_updates, self._pretrain, callback)

    def _pretrain(self, updates: int) -> None:
        self.policy.set_training_mode(True)
        if self.standardize and self._model_updates == 0:
            self._fit_normalizer()
        for _ in range(updates):
            loss, _ = self._train_model(self._without_burn_in(self._sample(self.batch_size)))
            self.logger.record_mean("train/pretraining_loss", loss.item())

    def _sample(self, batch_size: int) -> SequenceBatch:
        return self.replay_buffer.sample_sequences(batch_size, env=self._vec_normalize_env)

    def _without_burn_in(self, batch: SequenceBatch) -> SequenceBatch:
        """Return the steps to learn from, without the burn-in."""
        if not self.replay_buffer.burn_in:
            return batch
        steps = batch.burn_in + th.arange(self.sequence_length + 1, device=batch.burn_in.device).unsqueeze(1)
        inside = steps[:-1]
        return SequenceBatch(
            observations=at(batch.observations, steps),
            previous_actions=at(batch.previous_actions, steps),
            rewards=at(batch.rewards, inside),
            terminals=at(batch.terminals, inside),
            mask=at(batch.mask, inside),
            burn_in=th.zeros_like(batch.burn_in),
            lengths=batch.lengths,
        )

    def _fit_normalizer(self) -> None:
        """Fit the normalization to the steps collected so far."""
        sequences = self._sample(max(self.learning_starts, 1000))
        there = sequences.mask.bool()
        self.latent.fit_normalizer(sequences.observations[:-1][there], sequences.rewards[there].unsqueeze(-1))

    def _train_model(self, sequences: SequenceBatch) -> tuple[th.Tensor, LatentPosterior]:
        weight = min(1.0, self._model_updates / max(1, self.divergence_warmup))
        loss, inferred = self.model_loss(sequences, weight)
        self._model_updates += 1
        self._descend(self.latent, loss)
        return loss, inferred

    def model_loss(
        self, sequences: SequenceBatch, divergence_weight: float = 1.0
    ) -> tuple[th.Tensor, LatentPosterior]:
        """Return the latent model's loss and the inferred posterior.

        :param sequences: sequences without burn-in
        :param divergence_weight: 1: the objective itself
        """
        observations, rewards = self.latent.normalize(sequences.observations, sequences.rewards.unsqueeze(-1))
        inferred = self.latent.infer(observations, sequences.actions)
        z = inferred.z
        if self.variant == "han":  # decoders read z¹ sampled from its prior
            mean, std = inferred.prior
            z = th.cat([mean + std * th.randn_like(mean), inferred.z2], dim=-1)
        divergence = gaussian_kl(*inferred.posterior, *inferred.prior)
        observation_log = gaussian_log_prob(observations, *self.latent.observation(z))
        reward_log = gaussian_log_prob(rewards, *self.latent.decode_rewards(z, sequences.actions))
        step_mask = sequences.mask
        observation_mask = th.cat([th.ones_like(step_mask[:1]), step_mask])
        if self.variant == "lee":
            step_mask = step_mask * (1 - sequences.terminals)
        parts = (observation_log, reward_log, divergence, observation_mask, step_mask)
        if self.variant == "han":
            return han_loss(*parts, self.policy.observation_dim, self.latent.z1_dim), inferred
        return elbo_loss(*parts, divergence_weight), inferred

    def rl_batch(self, batch: SequenceBatch, sequences: SequenceBatch, latents: th.Tensor) -> RLBatch:
        """Return what actor and critics learn from, with actions sampled from the actor.

        :param batch: sequences with burn-in
        :param sequences: without
        :param latents: what critics read of the latent states, ``(sequence_length + 1, n, ...)``
        """
        mask: th.Tensor | None
        if self.rl_positions == "last":
            here, mask = (sequences.lengths - 1).unsqueeze(0), None
        else:
            here = (
                th.arange(self.sequence_length, device=latents.device)
                .unsqueeze(1)
                .expand(-1, len(sequences.lengths))
            )
            mask = sequences.mask
        # With a state value the actions after the next observation are not needed.
        steps = here if self.critic.value is not None else th.cat([here, here + 1])
        mean, log_std = self._heads(batch, steps)
        sampled, log_probs = squashed_gaussian(mean, log_std, th.randn_like(mean))
        k = len(here)
        return RLBatch(
            latents=at(latents, here),
            next_latents=at(latents, here + 1),
            actions=at(sequences.actions, here),
            rewards=at(sequences.rewards, here),
            terminals=at(sequences.terminals, here),
            mask=mask,
            sampled=sampled[:k],
            log_probs=log_probs[:k],
            next_sampled=sampled[k:],
            next_log_probs=log_probs[k:],
        )

    def critic_loss(self, rl: RLBatch, ent_coef: th.Tensor) -> th.Tensor:
        """Return the critics' loss; its gradient reaches the critics alone.

        :param rl: of :meth:`rl_batch`
        :param ent_coef: the entropy coefficient
        """
        with th.no_grad():
            if self.critic.value is not None:
                following = self.critic_target(rl.next_latents).squeeze(-1)
            else:
                next_values = self.critic_target(rl.next_latents, rl.next_sampled)
                following = soft_values(next_values, rl.next_log_probs, ent_coef)
            targets = soft_targets(rl.rewards, rl.terminals, self.gamma, following)
        loss = critic_loss(self.critic(rl.latents, rl.actions), targets, rl.mask)
        if self.critic.value is None:
            return loss
        with th.no_grad():
            values = soft_values(self.critic(rl.latents, rl.sampled), rl.log_probs, ent_coef)
        return loss + critic_loss((self.critic.value(rl.latents).squeeze(-1),), values, rl.mask)

    def actor_loss(self, rl: RLBatch, ent_coef: th.Tensor) -> th.Tensor:
        """Return the actor's loss against the current critics; its gradient reaches the actor alone.

        :param rl: of :meth:`rl_batch`
        :param ent_coef: the entropy coefficient
        """
        with frozen(self.critic):
            action_values = self.critic(rl.latents, rl.sampled)
        return actor_loss(action_values, rl.log_probs, ent_coef, rl.mask)

    def _heads(self, batch: SequenceBatch, steps: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return mean and ``log σ`` at some steps of the sequences, ``(K, n, action_dim)`` each."""
        there = batch.burn_in + steps
        if isinstance(self.actor, SequenceActor):
            mean, log_std = self.actor.over(batch)
            return at(mean, there), at(log_std, there)
        heads: tuple[th.Tensor, th.Tensor] = self.actor(at(self.actor.stack(batch), there))
        return heads

    # -------------------------------------------------------------------------------------------------- state

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "latent"]

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        modules, variables = super()._get_torch_save_params()
        return [*modules, "latent.optimizer"], variables

    def checkpoint_state(self) -> dict[str, Any]:
        """Return the state that Stable-Baselines3 does not save."""
        return {"model_updates": self._model_updates, "rollout": self._rollout}

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`checkpoint_state` returned."""
        self._model_updates, self._rollout = state["model_updates"], state.get("rollout")
