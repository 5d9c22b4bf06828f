"""ACER: actor-critic with experience replay, for discrete and continuous actions.

Wang et al. 2017, "Sample efficient actor-critic with experience replay", ICLR.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv, Schedule
from stable_baselines3.common.vec_env import VecEnv

from rlexp.algos.acer.policies import ACERCnnPolicy, ACERPolicy
from rlexp.algos.acer.recurrent import ACERCnnLstmPolicy, ACERLstmPolicy
from rlexp.algos.acer.replay import TERMINATED, TRUNCATED, TrajectoryReplayBuffer
from rlexp.algos.acer.spec import ACERConfig
from rlexp.algos.acer.updates import Info, Settings, acer_loss
from rlexp.algos.common.resumable_logging import ResumableLogging
from rlexp.errors import UsageError


class ACER(ResumableLogging):
    """Actor-critic with experience replay: ``ACER("MlpPolicy", env).learn(10_000)``.

    After every ``n_steps`` in each environment: one on-policy update on these steps, then a
    Poisson-distributed number of updates on replayed segments.

    :param policy: "MlpPolicy" or "CnnPolicy"; "MlpLstmPolicy" or "CnnLstmPolicy", which are recurrent; or a subclass of
        :class:`ACERPolicy`
    :param env: discrete actions, or continuous ones in a vector; vector or image observations
    :param learning_rate: as in A2C
    :param n_steps: length of a segment, per environment
    :param gamma: discount factor
    :param replay_ratio: mean number of updates on replayed segments per on-policy update; 0: none
    :param buffer_size: steps in the replay buffer, of all environments together
    :param batch_size: replayed segments per update
    :param learning_starts: steps in the replay buffer before the first update on them
    :param reward_scale: rewards are multiplied by it before they are learned from; 1 is right where returns are
        of the order of 1 to 100, and large returns are learned slowly
    :param ent_coef: weight of the entropy, whose gradient is taken inside the trust region
    :param vf_coef: weight of the critic's loss
    :param max_grad_norm: gradients are clipped to this norm; None: not clipped
    :param importance_weight_clip: c, above which importance weights of the policy's gradient are truncated; 10 is
        usual for discrete actions, half of it for continuous ones
    :param trust_region: whether updates are held close to the average policy
    :param trust_region_delta: δ
    :param trust_region_statistics: discrete: "probabilities" (as in OpenAI Baselines) or "logits": in which space the
        gradient is projected
    :param average_policy_decay: α, decay of the average policy's weights per update
    :param bias_correction: whether the bias of truncated weights is corrected through the critic
    :param retrace: False: plain returns in place of Retrace and of off-policy-corrected returns
    :param dueling: continuous: stochastic dueling network; False: separate heads for Q and V
    :param dueling_samples: continuous: actions sampled for it
    :param use_rms_prop: RMSProp, or else what ``policy_kwargs`` say (Adam)
    :param rms_prop_eps: its ε
    :param stats_window_size: episodes over which reported returns and lengths are averaged
    :param tensorboard_log: folder of TensorBoard's files; None: none
    :param policy_kwargs: further arguments of the policy
    :param verbose: 0: silent, 1: a table of metrics, 2: debugging messages
    :param seed: of every random number generator; None: not seeded
    :param device: of the networks, ``"auto"``: a GPU where there is one
    :raises UsageError: when a setting or a space cannot work
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": ACERPolicy,
        "CnnPolicy": ACERCnnPolicy,
        "MlpLstmPolicy": ACERLstmPolicy,
        "CnnLstmPolicy": ACERCnnLstmPolicy,
    }
    config = ACERConfig
    masked: ClassVar[bool] = False
    policy: ACERPolicy
    rollout_buffer: TrajectoryReplayBuffer  # type: ignore[assignment]
    replay_buffer: TrajectoryReplayBuffer

    def __init__(
        self,
        policy: str | type[ACERPolicy],
        env: GymEnv | str,
        learning_rate: float | Schedule = 7e-4,
        n_steps: int = 20,
        gamma: float = 0.99,
        replay_ratio: float = 4.0,
        buffer_size: int = 50_000,
        batch_size: int = 16,
        learning_starts: int = 1000,
        reward_scale: float = 1.0,
        ent_coef: float = 0.01,
        vf_coef: float = 0.5,
        max_grad_norm: float | None = 10.0,
        importance_weight_clip: float = 10.0,
        trust_region: bool = True,
        trust_region_delta: float = 1.0,
        trust_region_statistics: str = "probabilities",
        average_policy_decay: float = 0.99,
        bias_correction: bool = True,
        retrace: bool = True,
        dueling: bool = True,
        dueling_samples: int = 5,
        use_rms_prop: bool = True,
        rms_prop_eps: float = 1e-5,
        stats_window_size: int = 100,
        tensorboard_log: str | None = None,
        policy_kwargs: dict[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: th.device | str = "auto",
        _init_setup_model: bool = True,
    ) -> None:
        super().__init__(
            policy,
            env,
            learning_rate=learning_rate,
            n_steps=n_steps,
            gamma=gamma,
            gae_lambda=1.0,
            ent_coef=ent_coef,
            vf_coef=vf_coef,
            max_grad_norm=math.inf if max_grad_norm is None else max_grad_norm,
            use_sde=False,
            sde_sample_freq=-1,
            stats_window_size=stats_window_size,
            tensorboard_log=tensorboard_log,
            policy_kwargs=dict(policy_kwargs or {}),
            verbose=verbose,
            device=device,
            seed=seed,
            _init_setup_model=False,
        )
        self.replay_ratio = replay_ratio
        self.buffer_size = buffer_size
        self.batch_size = batch_size
        self.learning_starts = learning_starts
        self.reward_scale = reward_scale
        self.importance_weight_clip = importance_weight_clip
        self.trust_region = trust_region
        self.trust_region_delta = trust_region_delta
        self.trust_region_statistics = trust_region_statistics
        self.average_policy_decay = average_policy_decay
        self.bias_correction = bias_correction
        self.retrace = retrace
        self.dueling = dueling
        self.dueling_samples = dueling_samples
        if use_rms_prop and "optimizer_class" not in self.policy_kwargs:
            self.policy_kwargs["optimizer_class"] = th.optim.RMSprop
            self.policy_kwargs["optimizer_kwargs"] = {"alpha": 0.99, "eps": rms_prop_eps}
        if _init_setup_model:
            self._setup_model()

    @staticmethod
    def policy_for(observation_space: spaces.Space[Any]) -> str:
        """Return the default policy; grids of zeros and ones count as images.

        :param observation_space: of the environment
        """
        image = len(observation_space.shape or ()) == 3 and observation_space.dtype == np.uint8
        return "CnnPolicy" if image else "MlpPolicy"

    # ------------------------------------------------------------------------------------------------- set-up

    def _setup_model(self) -> None:
        self.check_spaces(self.observation_space, self.action_space)
        self._validate()
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.policy = self.policy_class(  # type: ignore[assignment]
            self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
        ).to(self.device)
        self.rollout_buffer = self._make_buffer(self.n_envs)
        self.replay_buffer = self._make_buffer(max(self.n_envs, self.buffer_size // self.n_steps))
        self._last_lstm_states: th.Tensor | None = None
        if (shape := self.policy.lstm_state_shape) is not None:
            self._last_lstm_states = th.zeros(shape[0], self.n_envs, shape[1], device=self.device)

    def _make_buffer(self, capacity: int) -> TrajectoryReplayBuffer:
        space = self.action_space
        discrete = isinstance(space, spaces.Discrete)
        statistics = int(space.n) if discrete else 2 * int(np.prod(space.shape or ()))  # type: ignore[attr-defined]
        return TrajectoryReplayBuffer(
            capacity,
            self.n_steps,
            self.observation_space,
            space,
            statistics,
            self.masked,
            self.policy.lstm_state_shape,
        )

    @classmethod
    def check_spaces(cls, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> None:
        """Check that it can read the observations and take the actions; the runner calls this before it creates a
        folder.

        :raises UsageError: naming the space
        """
        if isinstance(action_space, spaces.Discrete):
            if action_space.start != 0:
                raise UsageError(
                    f"ACER needs actions that are numbered from 0, the environment has {action_space}"
                )
        elif cls.masked:
            raise UsageError(
                f"ACER with action masks needs Discrete actions, the environment has {action_space}"
            )
        elif not isinstance(action_space, spaces.Box) or len(action_space.shape) != 1:
            raise UsageError(
                f"ACER needs Discrete actions or a Box of one dimension, the environment has {action_space}"
            )
        if isinstance(observation_space, (spaces.Dict, spaces.Tuple)):
            kind = type(observation_space).__name__
            raise UsageError(f"ACER needs vector or image observations, the environment has {kind}")

    # ------------------------------------------------------------------------------------------------ rollout

    def collect_rollouts(
        self,
        env: VecEnv,
        callback: BaseCallback,
        rollout_buffer: TrajectoryReplayBuffer,  # type: ignore[override]
        n_rollout_steps: int,
    ) -> bool:
        """Collect one segment in every environment.

        :param env: vectorised
        :param callback: as in A2C
        :param rollout_buffer: its capacity is the number of environments; its content is overwritten
        :param n_rollout_steps: T
        :return: False when a callback asked to stop
        """
        assert self._last_obs is not None, "No previous observation was provided"
        self.policy.set_training_mode(False)
        rollout_buffer.clear()
        callback.on_rollout_start()
        shape = (env.num_envs, *rollout_buffer.observations.shape[2:])
        self._begin_segments(env, rollout_buffer)
        for step in range(n_rollout_steps):
            rollout_buffer.observations[step] = np.asarray(self._last_obs).reshape(shape)
            actions, behaviour = self._act(rollout_buffer, step)
            new_obs, rewards, dones, infos = env.step(self._executed(actions))
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step():
                return False
            self._update_info_buffer(infos, dones)
            rollout_buffer.actions[step] = actions
            rollout_buffer.behaviour[step] = behaviour
            rollout_buffer.rewards[step] = rewards * self.reward_scale
            rollout_buffer.ends[step] = dones * TERMINATED
            for index in np.flatnonzero(dones).tolist():
                if infos[index].get("TimeLimit.truncated", False):
                    rollout_buffer.ends[step, index] = TRUNCATED
                    last = np.asarray(infos[index]["terminal_observation"]).reshape(shape[1:])
                    rollout_buffer.truncation_observations[step, index] = last
                    if self.masked:
                        allowed = infos[index].get("terminal_action_masks", np.ones_like(behaviour[index]))
                        rollout_buffer.truncation_masks[step, index] = np.asarray(allowed, bool)
            self._last_obs = new_obs  # type: ignore[assignment]
            self._last_episode_starts = dones
            if self.masked:
                rollout_buffer.masks[step + 1] = get_action_masks(env)
        rollout_buffer.observations[n_rollout_steps] = np.asarray(self._last_obs).reshape(shape)
        rollout_buffer.added = env.num_envs
        callback.update_locals(locals())
        callback.on_rollout_end()
        return True

    def _begin_segments(self, env: VecEnv, segments: TrajectoryReplayBuffer) -> None:
        """Store the action masks of the first states, and the recurrent state before them."""
        if self.masked:
            segments.masks[0] = get_action_masks(env)
        if self._last_lstm_states is not None:
            continues = ~th.as_tensor(self._last_episode_starts, device=self.device).bool()
            self._last_lstm_states = self._last_lstm_states.to(self.device) * continues.view(1, -1, 1)
            segments.lstm_states[:] = self._last_lstm_states.cpu().numpy()

    def _act(self, segments: TrajectoryReplayBuffer, step: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return actions and the distributions they were sampled from, and update the recurrent state."""
        observations = th.as_tensor(segments.observations[step], device=self.device)
        starts = th.as_tensor(self._last_episode_starts, device=self.device)
        masks = th.as_tensor(segments.masks[step], device=self.device) if self.masked else None
        actions, behaviour, self._last_lstm_states = self.policy.act(
            observations, self._last_lstm_states, starts, masks
        )
        return actions, behaviour

    def _executed(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the actions to execute for actions sampled from the unbounded policy."""
        if not isinstance(self.action_space, spaces.Box):
            return actions
        if self.policy.squash_output:
            return self.policy.unscale_action(actions.clip(-1, 1))
        return actions.clip(self.action_space.low, self.action_space.high)

    # ------------------------------------------------------------------------------------------------ updates

    def train(self) -> None:
        """Update once on-policy, then Poisson(``replay_ratio``) times on replayed segments."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        settings = self._settings()
        on_policy = self.rollout_buffer.get(np.arange(self.n_envs), self.device)
        self._log(self._update(on_policy, settings), replayed=False)
        if self.replay_ratio > 0:
            self.replay_buffer.add(self.rollout_buffer)
            if len(self.replay_buffer) * self.n_steps >= self.learning_starts:
                for _ in range(np.random.poisson(self.replay_ratio)):
                    indices = self.replay_buffer.sample(self.batch_size)
                    replayed = self.replay_buffer.get(indices, self.device)
                    self._log(self._update(replayed, settings), replayed=True)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def _update(self, segments: Any, settings: Settings) -> Info:
        loss, info = acer_loss(self.policy, segments, settings)
        self.policy.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        th.nn.utils.clip_grad_norm_(self.policy.trained, self.max_grad_norm)
        self.policy.optimizer.step()
        self.policy.update_average(self.average_policy_decay)
        self._n_updates += 1
        return info

    def _settings(self) -> Settings:
        return Settings(**{name: getattr(self, name) for name in Settings.__dataclass_fields__})

    def _log(self, info: Info, replayed: bool) -> None:
        """Record means since the last dump; on-policy every importance weight is 1."""
        for name, value in info.items():
            if replayed or name not in ("importance_weight", "truncated"):
                self.logger.record_mean(f"train/{name}", value.item())

    def predict(
        self,
        observation: npt.NDArray[Any] | dict[str, npt.NDArray[Any]],
        state: tuple[npt.NDArray[Any], ...] | None = None,
        episode_start: npt.NDArray[Any] | None = None,
        deterministic: bool = False,
        action_masks: npt.NDArray[Any] | None = None,
    ) -> tuple[npt.NDArray[Any], tuple[npt.NDArray[Any], ...] | None]:
        """Return actions and the recurrent state; see :meth:`ACERPolicy.predict`."""
        return self.policy.predict(observation, state, episode_start, deterministic, action_masks)

    # -------------------------------------------------------------------------------------------------- state

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "replay_buffer", "_last_lstm_states"]

    def save_replay_buffer(self, path: str | Path) -> None:
        """Write the replay buffer as plain arrays (``.npz``).

        :param path: of the file
        """
        state = self.replay_buffer.state()
        with Path(path).open("wb") as file:
            np.savez(file, allow_pickle=False, **state)

    def load_replay_buffer(self, path: str | Path) -> None:
        """Read a replay buffer that :meth:`save_replay_buffer` wrote.

        :param path: of the file
        :raises ValueError: when it was written with other spaces or settings
        """
        with np.load(path, allow_pickle=False) as archive:
            self.replay_buffer.restore(dict(archive))

    def checkpoint_state(self) -> dict[str, Any]:
        """Return the state that Stable-Baselines3 does not save: the replay buffer, as arrays."""
        return {"replay": self.replay_buffer.state()}

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`checkpoint_state` returned.

        :param state: of a checkpoint
        """
        self.replay_buffer.restore(state["replay"])


class MaskableACER(ACER):
    """:class:`ACER` for environments with ``action_masks()``.

    Forbidden actions have probability 0 under the policy, the average policy and the behaviour, so that values are
    means over allowed actions. Masks of truncation observations are read from ``info["terminal_action_masks"]``;
    without that key all actions count as allowed there.
    """

    masked: ClassVar[bool] = True
