"""R2D2 (Kapturowski et al. 2019, "Recurrent experience replay in distributed reinforcement learning", ICLR)."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, MaybeCallback, Schedule
from stable_baselines3.common.utils import LinearSchedule

from rlexp.algos.common.base import ValidatedAlgorithm, policy_by_shape
from rlexp.algos.common.saved_replay import SavedReplay
from rlexp.algos.r2d2.actor import Actor, per_actor_epsilons
from rlexp.algos.r2d2.learner import Info, Learner, Settings
from rlexp.algos.r2d2.policies import RecurrentPolicy, State
from rlexp.algos.r2d2.spec import R2D2Config
from rlexp.buffers.mixed_sequences import MixedSequences
from rlexp.buffers.prioritized_sequences import PrioritizedSequences
from rlexp.buffers.sequence_builder import SequenceLayout
from rlexp.errors import UsageError

Array = npt.NDArray[Any]


class R2D2(ValidatedAlgorithm, SavedReplay, OffPolicyAlgorithm):
    """Recurrent replay: ``R2D2("MlpPolicy", env).learn(50_000)``.

    Double Q-learning on sequences with stored recurrent states, burn-in, n-step targets of rescaled values and
    prioritized replay.

    :param policy: ``"MlpPolicy"``, ``"CnnPolicy"`` or ``"MultiInputPolicy"``, all of them :class:`RecurrentPolicy`
    :param env: discrete actions
    :param learning_rate: of Adam; 1e-4 to 1e-3
    :param buffer_size: steps in the replay buffer, ``buffer_size / sequence_period`` sequences
    :param learning_starts: steps at random before the first update
    :param batch_size: sequences per update
    :param sequence_length: steps of a sequence to learn from; 20 to 80
    :param burn_in: steps before them that only refresh the recurrent state; up to half of ``sequence_length``
    :param sequence_period: steps between the beginnings of two sequences; None: half the length, but no less than
        ``burn_in``
    :param n_steps: rewards before the value is bootstrapped; 3 to 10
    :param gamma: discount factor per step; 0.99 to 0.999
    :param double_q: the online network chooses the next action, the target network values it
    :param rescale_epsilon: ε of value rescaling, h(x) = sign(x)(√(|x| + 1) - 1) + εx; None: values are not rescaled
    :param td_clip: TD errors are clipped to ±td_clip in the gradient; None: not at all
    :param eta: weight of the largest error in a sequence's priority, from 0 to 1; the mean error has the rest
    :param max_grad_norm: gradients are clipped to this norm; None: not clipped
    :param target_update_interval: updates between two updates of the target network
    :param tau: weight of the online network in an update of the target network; 1: it is replaced
    :param replay: ``"proportional"`` or ``"rank"``
    :param alpha: how much priorities matter, from 0 (uniform) to 1
    :param beta: how much importance weights correct, from 0 to 1, throughout
    :param priority_epsilon: added to a sequence's error, so that every sequence can be sampled; small, 1e-6
    :param initial_priorities: ``"computed"``: of new sequences as the learner computes them; ``"max"``: the largest
        so far
    :param dueling: separate streams for state value and advantages
    :param head_arch: hidden units of the layers after the LSTM, of each stream; None: none
    :param previous_action: whether the network reads the action taken before the observation
    :param previous_reward: whether it reads the reward that came with the observation, through tanh
    :param train_freq: steps of every environment between updates
    :param gradient_steps: updates each time; -1: as many as steps were taken
    :param exploration_initial_eps: how likely an action is random at the beginning
    :param exploration_final_eps: how likely it is at the end of the decline
    :param exploration_fraction: fraction of the budget over which it declines linearly
    :param epsilon_base: each environment has its own constant exploration rate, see
        :func:`~rlexp.algos.r2d2.actor.per_actor_epsilons`; 0.4 is published. None: the same, declining rate for all
    :param epsilon_exponent: how far these rates are apart; 7 is published
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
    config = R2D2Config
    policy_for = staticmethod(policy_by_shape)
    reads_rewards = True
    """``predict`` takes ``rewards=``, the rewards that came with the observations."""
    policy: RecurrentPolicy
    replay_buffer: MixedSequences  # type: ignore[assignment]

    def __init__(
        self,
        policy: str | type[RecurrentPolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule = 5e-4,
        buffer_size: int = 100_000,
        learning_starts: int = 1000,
        batch_size: int = 64,
        sequence_length: int = 40,
        burn_in: int = 2,
        sequence_period: int | None = None,
        n_steps: int = 5,
        gamma: float = 0.997,
        double_q: bool = True,
        rescale_epsilon: float | None = 1e-3,
        td_clip: float | None = None,
        eta: float = 0.9,
        max_grad_norm: float | None = 40.0,
        target_update_interval: int = 400,
        tau: float = 1.0,
        replay: str = "proportional",
        alpha: float = 0.9,
        beta: float = 0.6,
        priority_epsilon: float = 1e-6,
        initial_priorities: str = "computed",
        dueling: bool = True,
        head_arch: list[int] | None = None,
        previous_action: bool = True,
        previous_reward: bool = True,
        train_freq: int = 8,
        gradient_steps: int = 1,
        exploration_initial_eps: float = 1.0,
        exploration_final_eps: float = 0.05,
        exploration_fraction: float = 0.1,
        epsilon_base: float | None = None,
        epsilon_exponent: float = 7.0,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: th.device | str = "auto",
        _init_setup_model: bool = True,
    ) -> None:
        net_arguments = {
            "dueling": dueling,
            "head_arch": head_arch,
            "previous_action": previous_action,
            "previous_reward": previous_reward,
        }
        super().__init__(
            policy,
            env,
            learning_rate,
            buffer_size=buffer_size,
            learning_starts=learning_starts,
            batch_size=batch_size,
            tau=tau,
            gamma=gamma,
            train_freq=train_freq,
            gradient_steps=gradient_steps,
            n_steps=n_steps,
            policy_kwargs={**(policy_kwargs or {}), **net_arguments},
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            verbose=verbose,
            device=device,
            seed=seed,
            sde_support=False,
            supported_action_spaces=(spaces.Discrete,),
            support_multi_env=True,
        )
        self.sequence_length = sequence_length
        self.burn_in = burn_in
        self.sequence_period = sequence_period
        self.double_q = double_q
        self.rescale_epsilon = rescale_epsilon
        self.td_clip = td_clip
        self.eta = eta
        self.max_grad_norm = math.inf if max_grad_norm is None else max_grad_norm
        self.target_update_interval = target_update_interval
        self.replay = replay
        self.alpha = alpha
        self.beta = beta
        self.priority_epsilon = priority_epsilon
        self.initial_priorities = initial_priorities
        self.exploration_initial_eps = exploration_initial_eps
        self.exploration_final_eps = exploration_final_eps
        self.exploration_fraction = exploration_fraction
        self.epsilon_base = epsilon_base
        self.epsilon_exponent = epsilon_exponent
        self.exploration_rate = exploration_initial_eps
        if _init_setup_model:
            self._setup_model()

    # ------------------------------------------------------------------------------------------------- set-up

    def _setup_model(self) -> None:
        self._check_environment()
        self._validate()
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self._convert_train_freq()
        policy = self.policy_class(
            self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
        )
        self.policy = policy.to(self.device)  # type: ignore[assignment]
        self.exploration_schedule = LinearSchedule(
            self.exploration_initial_eps, self.exploration_final_eps, self.exploration_fraction
        )
        self.learner = Learner(self.policy, self._settings())
        self.acting = Actor(self.policy, self.n_envs, self.sequence_layout)
        self.replay_buffer = self._make_replay()

    def _check_environment(self) -> None:
        if isinstance(self.action_space, spaces.Discrete) and self.action_space.start != 0:
            raise UsageError(
                f"{type(self).__name__} needs actions that are numbered from 0, the environment has {self.action_space}"
            )
        if self._vec_normalize_env is not None:
            raise UsageError(f"{type(self).__name__} does not support VecNormalize")

    @property
    def sequence_layout(self) -> SequenceLayout:
        """How episodes are cut into sequences."""
        half = max(self.burn_in, self.sequence_length // 2, 1)
        return SequenceLayout(
            self.burn_in, self.sequence_length, half if self.sequence_period is None else self.sequence_period
        )

    def _settings(self) -> Settings:
        names = (name for name in Settings.__dataclass_fields__ if hasattr(self, name))
        return Settings(**{name: getattr(self, name) for name in names})

    def _make_store(self, capacity: int, priority_epsilon: float) -> PrioritizedSequences:
        return PrioritizedSequences(
            capacity,
            self.sequence_layout,
            self.observation_space,
            int(self.action_space.n),  # type: ignore[attr-defined]
            self.policy.state_size,
            self.replay,
            self.alpha,
            self.beta,
            priority_epsilon,
        )

    def _make_replay(self) -> MixedSequences:
        agent = self._make_store(self.buffer_size // self.sequence_layout.period, self.priority_epsilon)
        return MixedSequences(agent, None, 0.0, self.device)

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        resets = reset_num_timesteps or self._last_obs is None
        found = super()._setup_learn(total_timesteps, callback, reset_num_timesteps, *args, **kwargs)
        if resets:  # the environments have been reset in the middle of their episodes
            self.acting.begin(self._last_obs)  # type: ignore[arg-type]
        return found

    # ------------------------------------------------------------------------------------------------- acting

    def _sample_action(
        self, learning_starts: int, action_noise: Any = None, n_envs: int = 1
    ) -> tuple[Array, Array]:
        """Act in every environment; at random before learning starts, but the recurrent states are updated."""
        epsilons: Array | float = 1.0
        if self.num_timesteps >= learning_starts:
            epsilons = self.exploration_rate
            if self.epsilon_base is not None:
                epsilons = per_actor_epsilons(n_envs, self.epsilon_base, self.epsilon_exponent)
        assert self._last_obs is not None
        actions = self.acting.act(self._last_obs, epsilons)
        return actions, actions

    def _store_transition(  # type: ignore[override]
        self,
        replay_buffer: MixedSequences,
        buffer_action: Array,
        new_obs: Array | dict[str, Array],
        reward: Array,
        dones: Array,
        infos: list[dict[str, Any]],
    ) -> None:
        """Add one step of every environment, and store the sequences that are complete."""
        complete = self.acting.observe(reward, dones, infos, new_obs)
        self._last_obs = new_obs
        if complete is None:
            return
        priorities = None
        if self.initial_priorities == "computed":
            priorities = self.learner.initial_priorities(complete)
        replay_buffer.agent.add(complete, priorities)

    def _on_step(self) -> None:
        self.exploration_rate = self.exploration_schedule(self._current_progress_remaining)
        if self.epsilon_base is None:
            self.logger.record("rollout/exploration_rate", self.exploration_rate)

    def predict(
        self,
        observation: Array | dict[str, Array],
        state: State | None = None,
        episode_start: Array | None = None,
        deterministic: bool = False,
        rewards: Array | None = None,
    ) -> tuple[Array, State | None]:
        """Act, at random with the exploration rate unless deterministic; see :meth:`RecurrentPolicy.predict`."""
        actions, after = self.policy.predict(observation, state, episode_start, True, rewards)
        if deterministic:
            return actions, after
        assert after is not None
        chosen = np.atleast_1d(actions).copy()
        for env in np.flatnonzero(np.random.random_sample(len(chosen)) < self.exploration_rate):
            chosen[env] = self.action_space.sample()
        return (chosen if np.ndim(actions) else chosen.squeeze(axis=0)), (after[0], chosen)

    # ------------------------------------------------------------------------------------------------ learning

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Do some updates, each on a batch of its own."""
        if len(self.replay_buffer.agent) == 0 and self.replay_buffer.demonstrations is None:
            return  # no sequence is complete yet
        self._learn_from_replay(gradient_steps, batch_size, None)

    def _learn_from_replay(self, updates: int, batch_size: int, demonstration_ratio: float | None) -> None:
        """Do updates on batches with some ratio of demonstrations; None: the configured one."""
        self._update_learning_rate(self.policy.optimizer)
        self.learner.updates = self._n_updates
        infos: list[Info] = []
        for _ in range(updates):
            drawn = self.replay_buffer.sample(batch_size, demonstration_ratio)
            priorities, info = self.learner.update(drawn.sample)
            self.replay_buffer.update_priorities(drawn, priorities)
            infos.append(info)
        self._n_updates += updates
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        for name in infos[0]:
            self.logger.record_mean(f"train/{name}", th.stack([info[name] for info in infos]).mean().item())
        self._log_replay()

    def _log_replay(self) -> None:
        replay = self.replay_buffer
        self.logger.record("replay/sequences", len(replay.agent))
        self.logger.record("replay/agent_draws", replay.agent_draws)
        self.logger.record("replay/max_priority", replay.agent.max_priority)

    def learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: int = 10,
        tb_log_name: str = "",
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Learn as every Stable-Baselines3 algorithm does; see :class:`stable_baselines3.DQN`."""
        name = tb_log_name or type(self).__name__
        return super().learn(total_timesteps, callback, log_interval, name, reset_num_timesteps, progress_bar)

    # -------------------------------------------------------------------------------------------------- state

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "policy.optimizer"], []

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "acting", "learner", "replay_buffer"]

    def checkpoint_state(self) -> dict[str, Any]:
        """Return the state that Stable-Baselines3 does not save: replay, recurrent states, exploration rate."""
        return {
            "replay": self.replay_buffer.checkpoint_state(),
            "actor": self.acting.state(),
            "exploration_rate": self.exploration_rate,
        }

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`checkpoint_state` returned.

        :param state: of a checkpoint
        """
        self.replay_buffer.load_checkpoint_state(state["replay"])
        self.acting.load_state(state["actor"])
        self.exploration_rate = state["exploration_rate"]
