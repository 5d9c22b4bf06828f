"""DQfD: deep Q-learning from demonstrations (Hester et al. 2018, AAAI)."""

from __future__ import annotations

from typing import Any

import torch as th
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.utils import polyak_update
from stable_baselines3.dqn.policies import DQNPolicy

from rlexp.algos.common.demonstration_learner import DemonstrationLearner, DemonstrationSource
from rlexp.algos.dqfd.spec import DQfDConfig
from rlexp.algos.dqn.dqn import DQN
from rlexp.buffers.demonstration_replay import DemonstrationReplay, DemonstrationSamples
from rlexp.losses.dqn import td_targets, weighted_td_loss
from rlexp.losses.sequences import l2_penalty, large_margin


class DQfD(DemonstrationLearner, DQN):
    """Feed-forward double Q-learning from demonstrations and experience in one prioritized replay.

    ``J = J_1 + λ_n J_n + λ_E J_E + λ_2 Σ θ²``: one-step and n-step double Q-learning, large margin on demonstrations,
    L2.

    All arguments of :class:`~rlexp.algos.dqn.dqn.DQN` are taken; these are added or have another default.

    :param policy: ``"MlpPolicy"``, ``"CnnPolicy"`` or ``"MultiInputPolicy"``
    :param env: discrete actions
    :param demonstrations: file of ``rlexp demos``, a Minari dataset, or what was read from one
    :param demonstration_episodes: only the first so many episodes; None: all
    :param pretrain_updates: on demonstrations alone, before the first step; 1,000 to 750,000 (Atari)
    :param agent_bonus: added to the priorities of the agent's own transitions, ε_a
    :param demonstration_bonus: added to those of demonstrations, ε_d; larger, so that they are sampled more often
    :param n_step_coef: weight of the n-step loss
    :param supervised_coef: weight of the large-margin loss. TD terms are half the squared error here; where they are
        the whole square, as in DI-engine, the same coefficient weighs half as much: 0.5 here is 1 there
    :param margin: margin by which the value of the expert's action has to lead
    :param l2_coef: weight of the sum of squares of all parameters
    :param n_steps: rewards before the value of the n-step loss is bootstrapped
    :param dueling: separate streams for state value and advantages
    :param replay: ``"proportional"``, the only supported scheme
    :param alpha: how much priorities matter, from 0 (uniform) to 1
    :param beta: how much importance weights correct at first, from 0 to 1; grows to 1 over training
    :param priority_epsilon: added to every priority; 0, since the two bonuses replace it
    :param dqn: every other argument of :class:`~rlexp.algos.dqn.dqn.DQN`
    :raises UsageError: when a setting, a space or the demonstrations cannot work
    """

    config = DQfDConfig
    replay_buffer: DemonstrationReplay

    def __init__(
        self,
        policy: str | type[DQNPolicy],
        env: GymEnv | str,
        *,
        demonstrations: DemonstrationSource | None = None,
        demonstration_episodes: int | None = None,
        pretrain_updates: int = 1000,
        agent_bonus: float = 0.001,
        demonstration_bonus: float = 1.0,
        n_step_coef: float = 1.0,
        supervised_coef: float = 1.0,
        margin: float = 0.8,
        l2_coef: float = 1e-5,
        n_steps: int = 10,
        dueling: bool = True,
        replay: str = "proportional",
        alpha: float | None = 0.4,
        beta: float | None = 0.6,
        priority_epsilon: float = 0.0,
        _init_setup_model: bool = True,
        **dqn: Any,
    ) -> None:
        super().__init__(
            policy,
            env,
            n_steps=n_steps,
            dueling=dueling,
            alpha=alpha,
            beta=beta,
            priority_epsilon=priority_epsilon,
            replay=replay,
            _init_setup_model=False,
            **dqn,
        )
        self.replay_buffer_class = DemonstrationReplay
        self.replay_buffer_kwargs |= {"agent_bonus": agent_bonus, "demonstration_bonus": demonstration_bonus}
        self.demonstrations = demonstrations
        self.demonstration_episodes = demonstration_episodes
        self.pretrain_updates = pretrain_updates
        self.n_step_coef = n_step_coef
        self.supervised_coef = supervised_coef
        self.margin = margin
        self.l2_coef = l2_coef
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        super()._setup_model()
        self.replay_buffer.episodes = self._episodes

    def _setup_learn(self, *args: Any, **kwargs: Any) -> Any:
        self.replay_buffer.load_demonstrations()
        return super()._setup_learn(*args, **kwargs)

    def _pretrain(self, updates: int) -> None:
        for _ in range(updates):
            self.train(1, self.batch_size)
            # During training it depends on steps; here on updates, as often as with one environment.
            if self._n_updates % max(1, self.target_update_interval // self._steps_per_update()) == 0:
                polyak_update(self.q_net.parameters(), self.q_net_target.parameters(), self.tau)

    def _steps_per_update(self) -> int:
        frequency: int = self.train_freq.frequency  # type: ignore[union-attr]
        return frequency

    def train(self, gradient_steps: int, batch_size: int = 32) -> None:
        """Do some updates, each on a batch of its own."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        self.replay_buffer.anneal(self._current_progress_remaining)
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample_mixed(batch_size, self._vec_normalize_env)
            loss, td_errors = self._loss(batch)
            self.policy.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            if self.max_grad_norm is not None:
                th.nn.utils.clip_grad_norm_(self.q_net.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
            self.replay_buffer.update_priorities(batch.many.indices, td_errors)
            self.logger.record_mean("train/loss", loss.item())
            self.logger.record_mean("train/td_error", td_errors.abs().mean().item())
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        replay = self.replay_buffer
        self.logger.record("replay/agent_draws", replay.agent_draws)
        self.logger.record("replay/demonstration_draws", replay.demonstration_draws)
        drawn = replay.agent_draws + replay.demonstration_draws
        self.logger.record("replay/demonstration_share", replay.demonstration_draws / drawn)

    def _loss(self, batch: DemonstrationSamples) -> tuple[th.Tensor, th.Tensor]:
        """Return the loss and the one-step TD errors, ``(n, 1)``, from which priorities are computed."""
        many, one = batch.many, batch.one
        with th.no_grad():
            following = _stacked(one.next_observations, many.next_observations)
            chooser = self.q_net(following).chunk(2) if self.double_q else (None, None)
            near, far = self.q_net_target(following).chunk(2)
            assert many.discounts is not None
            one_step = td_targets(one.rewards, one.dones, self.gamma, near, chooser[0])
            n_step = td_targets(many.rewards, many.dones, many.discounts, far, chooser[1])
        values = self.q_net(many.observations)
        actions = many.actions.long()
        taken = values.gather(1, actions)
        td_errors = one_step - taken
        loss = weighted_td_loss(td_errors, many.weights, self.td_clip)
        loss = loss + self.n_step_coef * weighted_td_loss(n_step - taken, many.weights, self.td_clip)
        if self.supervised_coef > 0:
            lead = large_margin(values, actions.squeeze(1), self.margin).unsqueeze(1)
            loss = loss + self.supervised_coef * (lead * batch.is_demonstration * many.weights).mean()
        if self.l2_coef > 0:
            loss = loss + self.l2_coef * l2_penalty(self.q_net.parameters())
        return loss, td_errors.detach()


def _stacked(one: Any, other: Any) -> Any:
    if isinstance(one, dict):
        return {key: th.cat([one[key], other[key]]) for key in one}
    return th.cat([one, other])
