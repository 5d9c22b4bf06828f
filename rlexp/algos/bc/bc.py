"""Behaviour cloning: supervised learning of the actions in demonstrations, recurrent or not."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule
from stable_baselines3.common.utils import safe_mean

from rlexp.algos.bc.spec import BCConfig
from rlexp.algos.common.base import ValidatedAlgorithm, policy_by_shape
from rlexp.algos.common.demonstration_learner import DemonstrationSource, episodes_for, unsaved_demonstrations
from rlexp.algos.r2d2.policies import RecurrentPolicy, State
from rlexp.buffers.mixed_sequences import SequenceSample, tensors
from rlexp.buffers.sequence_builder import SequenceLayout, Sequences, cut_episodes, join, take
from rlexp.demonstrations.dataset import Episode
from rlexp.losses.imitation import agreement, cloning_loss
from rlexp.losses.sequences import l2_penalty, valid_steps

Array = npt.NDArray[Any]
_LOG_EVERY = 10  # rounds


class BC(ValidatedAlgorithm):
    """Behaviour cloning: ``BC("MlpPolicy", env, demonstrations="file.npz").learn(100_000)``.

    It takes no step in the environment, which only defines the spaces. ``num_timesteps`` counts the steps of
    demonstrations in all batches; training ends with the update that reaches the budget. An episode counts when its
    last sequence is in a batch: ``rollout/ep_rew_mean`` is the return of the demonstrations; only evaluations measure
    the clone.

    :param policy: ``"MlpPolicy"``, ``"CnnPolicy"`` or ``"MultiInputPolicy"``, all of them :class:`RecurrentPolicy`
    :param env: discrete actions
    :param demonstrations: file of ``rlexp demos``, a Minari dataset, or what was read from one
    :param demonstration_episodes: only the first so many episodes; None: all
    :param validation_fraction: fraction of the episodes, the last ones, held out for validation; from 0 to below 1
    :param learning_rate: of Adam; 1e-4 to 1e-3
    :param batch_size: sequences per update
    :param sequence_length: steps of a sequence to learn from; 20 to 80
    :param burn_in: steps before them that only refresh the recurrent state; up to half of ``sequence_length``
    :param sequence_period: steps between the beginnings of two sequences; None: half the length, but no less than
        ``burn_in``
    :param l2_coef: weight of the sum of squares of all parameters
    :param max_grad_norm: gradients are clipped to this norm; None: not clipped
    :param updates_per_round: updates between two rollout boundaries, at which a run may be saved and stopped
    :param head_arch: hidden units of the layers after the LSTM, of each stream; None: none
    :param previous_action: whether the network reads the action taken before the observation
    :param previous_reward: whether it reads the reward that came with the observation, through tanh
    :param stats_window_size: episodes over which reported returns and lengths are averaged
    :param tensorboard_log: folder of TensorBoard's files; None: none
    :param policy_kwargs: further arguments of the policy
    :param verbose: 0: silent, 1: a table of metrics, 2: debugging messages
    :param seed: of every random number generator; None: not seeded
    :param device: of the networks, ``"auto"``: a GPU where there is one
    :raises UsageError: when a setting or a space cannot work
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": RecurrentPolicy,
        "CnnPolicy": RecurrentPolicy,
        "MultiInputPolicy": RecurrentPolicy,
    }
    config = BCConfig
    policy_for = staticmethod(policy_by_shape)
    reads_rewards = True
    policy: RecurrentPolicy

    def __init__(
        self,
        policy: str | type[RecurrentPolicy],
        env: GymEnv | str,
        demonstrations: DemonstrationSource | None = None,
        demonstration_episodes: int | None = None,
        validation_fraction: float = 0.1,
        learning_rate: float | Schedule = 1e-3,
        batch_size: int = 32,
        sequence_length: int = 40,
        burn_in: int = 0,
        sequence_period: int | None = None,
        l2_coef: float = 0.0,
        max_grad_norm: float | None = 10.0,
        updates_per_round: int = 10,
        head_arch: list[int] | None = None,
        previous_action: bool = False,
        previous_reward: bool = False,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: th.device | str = "auto",
        _init_setup_model: bool = True,
    ) -> None:
        net_arguments = {
            "dueling": False,
            "with_target": False,
            "head_arch": head_arch,
            "previous_action": previous_action,
            "previous_reward": previous_reward,
        }
        super().__init__(
            policy,
            env,
            learning_rate,
            policy_kwargs={**(policy_kwargs or {}), **net_arguments},
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            verbose=verbose,
            device=device,
            seed=seed,
            support_multi_env=True,
            supported_action_spaces=(spaces.Discrete,),
        )
        self.demonstrations = demonstrations
        self.demonstration_episodes = demonstration_episodes
        self.validation_fraction = validation_fraction
        self.batch_size = batch_size
        self.sequence_length = sequence_length
        self.burn_in = burn_in
        self.sequence_period = sequence_period
        self.l2_coef = l2_coef
        self.max_grad_norm = math.inf if max_grad_norm is None else max_grad_norm
        self.updates_per_round = updates_per_round
        if _init_setup_model:
            self._setup_model()

    def _setup_model(self) -> None:
        self._validate()
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.policy = self.policy_class(  # type: ignore[assignment]
            self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
        ).to(self.device)
        self._training: Sequences | None = None
        self._infos: list[dict[str, Any]] = []  # of every sequence
        self._validation: SequenceSample | None = None

    @property
    def sequence_layout(self) -> SequenceLayout:
        """How episodes are cut into sequences."""
        half = max(self.burn_in, self.sequence_length // 2, 1)
        return SequenceLayout(
            self.burn_in, self.sequence_length, half if self.sequence_period is None else self.sequence_period
        )

    # ------------------------------------------------------------------------------------------------ learning

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int | None = _LOG_EVERY,
        tb_log_name: str = "BC",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Learn from batches until they have contained so many steps.

        :param log_interval: rounds between two rows of the log, counted from the beginning of training
        """
        self._load_demonstrations()
        total_timesteps, callback = self._setup_learn(
            total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar
        )
        callback.on_training_start(locals(), globals())
        while self.num_timesteps < total_timesteps:
            callback.on_rollout_start()
            before = self._n_updates
            n_steps, infos = self.train(total_timesteps - self.num_timesteps)
            self.num_timesteps += n_steps
            self._update_current_progress_remaining(self.num_timesteps, total_timesteps)
            dones = np.array(["episode" in info for info in infos])
            self._update_info_buffer(infos, dones)
            callback.update_locals({"dones": dones, "infos": infos, "self": self})
            if not callback.on_step():
                break
            callback.on_rollout_end()
            if log_interval:
                updates = log_interval * self.updates_per_round
                if self._n_updates // updates > before // updates:
                    self.dump_logs()
        callback.on_training_end()
        return self

    def train(self, steps: int) -> tuple[int, list[dict[str, Any]]]:
        """Do one round of updates, which ends early when the budget is used up.

        :param steps: left of the budget
        :return: steps of the batches, and an ``info`` per sequence; the last one of an episode has ``episode``, as from
            Stable-Baselines3's ``Monitor``
        """
        assert self._training is not None
        infos: list[dict[str, Any]] = []
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        n_steps = 0
        n = len(self._training)
        for _ in range(self.updates_per_round):
            indices = np.random.randint(n, size=self.batch_size)
            batch = self._batch(take(self._training, indices))
            loss, accuracy = self._loss(batch)
            objective = loss
            if self.l2_coef > 0:
                objective = loss + self.l2_coef * l2_penalty(self.policy.q_net.parameters())
            self.policy.optimizer.zero_grad()
            objective.backward()  # type: ignore[no-untyped-call]
            th.nn.utils.clip_grad_norm_(self.policy.q_net.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
            n_steps += int(batch.lengths.sum())
            self.logger.record_mean("train/loss", loss.item())
            self.logger.record_mean("train/agreement", accuracy.item())
            infos += [dict(self._infos[index]) for index in indices]
            self._n_updates += 1
            if n_steps >= steps:
                break
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        return n_steps, infos

    def _loss(self, batch: SequenceSample) -> tuple[th.Tensor, th.Tensor]:
        logits = self.policy.q_net.unroll(
            batch.observations,
            batch.last_actions,
            batch.last_rewards,
            batch.states,
            batch.has_burn_in,
            self.burn_in,
        )[:-1]
        actions = batch.last_actions[self.burn_in + 1 :].clamp(max=logits.shape[-1] - 1)
        valid = valid_steps(len(actions), batch.lengths)
        return cloning_loss(logits, actions, valid), agreement(logits, actions, valid)

    def dump_logs(self, iteration: int = 0) -> None:
        """Write a row of the log, with the metrics of the held-out demonstrations.

        :param iteration: not used, as in Stable-Baselines3's off-policy algorithms
        """
        if self._validation is not None:
            self.policy.set_training_mode(False)
            with th.inference_mode():
                loss, accuracy = self._loss(self._validation)
            self.logger.record("validation/loss", loss.item())
            self.logger.record("validation/agreement", accuracy.item())
        if self.ep_info_buffer:
            for key, name in (("r", "ep_rew_mean"), ("l", "ep_len_mean")):
                self.logger.record(f"rollout/{name}", safe_mean([info[key] for info in self.ep_info_buffer]))
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(step=self.num_timesteps)

    def _load_demonstrations(self) -> None:
        if self._training is not None:
            return
        assert self.env is not None
        episodes = episodes_for(self.demonstrations, self.demonstration_episodes, self.env, "BC")
        n_held_out = int(len(episodes) * self.validation_fraction)
        learned = episodes[: len(episodes) - n_held_out]
        parts = [self._cut((episode,)) for episode in learned]
        self._training = join(parts)
        for episode, part in zip(learned, parts, strict=True):
            total = {"r": float(episode.rewards.sum(dtype=np.float64)), "l": len(episode), "t": 0.0}
            self._infos += [{} for _ in range(len(part) - 1)] + [{"episode": total}]
        if n_held_out:
            self._validation = self._batch(self._cut(episodes[len(learned) :]))

    def _cut(self, episodes: tuple[Episode, ...]) -> Sequences:
        n_actions = int(self.action_space.n)  # type: ignore[attr-defined]
        return cut_episodes(
            episodes, self.sequence_layout, self.observation_space, n_actions, self.policy.state_size
        )

    def _batch(self, sequences: Sequences) -> SequenceSample:
        n = len(sequences)
        return tensors(sequences, np.ones(n), np.ones(n, bool), self.burn_in, self.device)

    # ------------------------------------------------------------------------------------------- acting, state

    def predict(
        self,
        observation: Array | dict[str, Array],
        state: State | None = None,
        episode_start: Array | None = None,
        deterministic: bool = False,
        rewards: Array | None = None,
    ) -> tuple[Array, State | None]:
        """Act; see :meth:`RecurrentPolicy.predict`."""
        return self.policy.predict(observation, state, episode_start, deterministic, rewards)

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "policy.optimizer"], []

    def _excluded_save_params(self) -> list[str]:
        return [
            *super()._excluded_save_params(),
            *unsaved_demonstrations(self.demonstrations),
            "_training",
            "_validation",
            "_infos",
        ]
