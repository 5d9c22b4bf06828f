"""DQN with double Q-learning, a dueling network, n-step returns and prioritized replay, each optional."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3 import DQN as PlainDQN
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.dqn.policies import DQNPolicy

from rlexp.algos.common.base import ValidatedAlgorithm, policy_by_shape, reject_reset_result
from rlexp.algos.common.saved_replay import SavedReplay
from rlexp.algos.dqn.policies import CnnPolicy, MlpPolicy, MultiInputPolicy
from rlexp.algos.dqn.spec import DQNConfig
from rlexp.buffers.prioritized import PrioritizedReplayBuffer
from rlexp.buffers.replay import NStepReplay
from rlexp.losses.dqn import td_targets, weighted_td_gradient, weighted_td_loss


class DQN(ValidatedAlgorithm, SavedReplay, PlainDQN):
    """Deep Q-network; each environment explores independently.

    :param policy: ``"MlpPolicy"``, ``"CnnPolicy"`` or ``"MultiInputPolicy"``
    :param env: discrete actions
    :param double_q: the online network chooses the next action, the target network values it (van Hasselt et al. 2016)
    :param dueling: separate streams for state value and advantages (Wang et al. 2016)
    :param replay: ``"uniform"``, ``"proportional"`` or ``"rank"`` (Schaul et al. 2016)
    :param alpha: how much priorities matter, from 0 (uniform) to 1; None: as published, 0.6 proportional, 0.7 rank. No
        effect on uniform replay, nor have the next four
    :param beta: how much importance weights correct at first, from 0 to 1; grows to 1 over training. None: as
        published, 0.4 proportional, 0.5 rank
    :param priority_epsilon: added to the size of a TD error, so that every transition can be sampled; small, 1e-6
    :param weights_by: importance weights are divided by the largest of the ``"buffer"`` or of the ``"batch"``
    :param sort_every: rank: transitions added between two sortings of the heap; None: as many as it holds
    :param reward_clip: rewards are clipped to ±reward_clip; None: not at all; 1 is usual on Atari
    :param td_clip: TD errors are clipped to ±td_clip, in the gradient and as priorities; None: not at all
    :param n_steps: rewards before the value is bootstrapped; 1 to 10
    :param gamma: discount factor per step, 0.9 to 0.999
    :param share_frames: store every frame of stacked images once in the replay buffer; None: if observations
        are stacks of uint8 images of at least 36×36
    :param dqn: every other argument of Stable-Baselines3's ``DQN`` except ``replay_buffer_class``
    :raises ValueError: when a value is not allowed
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {
        "MlpPolicy": MlpPolicy,
        "CnnPolicy": CnnPolicy,
        "MultiInputPolicy": MultiInputPolicy,
    }
    config = DQNConfig
    policy_for = staticmethod(policy_by_shape)
    replay_buffer: NStepReplay

    def __init__(
        self,
        policy: str | type[DQNPolicy],
        env: GymEnv | str,
        *,
        double_q: bool = True,
        dueling: bool = False,
        replay: str = "proportional",
        alpha: float | None = None,
        beta: float | None = None,
        priority_epsilon: float = 1e-6,
        weights_by: str = "buffer",
        sort_every: int | None = None,
        reward_clip: float | None = None,
        td_clip: float | None = 1.0,
        n_steps: int = 1,
        gamma: float = 0.99,
        share_frames: bool | None = None,
        **dqn: Any,
    ) -> None:
        self.double_q = double_q
        self.replay = replay
        self.td_clip = td_clip
        self.share_frames = share_frames
        buffer_kwargs: dict[str, Any] = {"n_steps": n_steps, "gamma": gamma, "reward_clip": reward_clip}
        if replay != "uniform":
            buffer_kwargs |= {"scheme": replay, "alpha": alpha, "beta": beta,
                              "priority_epsilon": priority_epsilon, "weights_by": weights_by,
                              "sort_every": sort_every}  # fmt: skip
        dqn["replay_buffer_kwargs"] = {**dqn.get("replay_buffer_kwargs", {}), **buffer_kwargs}
        dqn["policy_kwargs"] = {**(dqn.get("policy_kwargs") or {}), "dueling": dueling}
        kind = NStepReplay if replay == "uniform" else PrioritizedReplayBuffer
        super().__init__(policy, env, n_steps=n_steps, gamma=gamma, replay_buffer_class=kind, **dqn)

    def _setup_model(self) -> None:
        shares = _are_image_stacks(self.observation_space) if self.share_frames is None else self.share_frames
        self.replay_buffer_kwargs["share_frames"] = shares
        with warnings.catch_warnings():
            # Our buffers take n_steps through replay_buffer_kwargs.
            warnings.filterwarnings("ignore", message=".*is ignored because a custom `replay_buffer_class`")
            super()._setup_model()

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        reset_num_timesteps: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        resets = reset_num_timesteps or self._last_obs is None
        found = super()._setup_learn(total_timesteps, callback, reset_num_timesteps, *args, **kwargs)
        if resets:  # the environments have been reset in the middle of their episodes
            self.replay_buffer.break_trajectories()
        return found

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Do some updates, each on a batch of its own."""
        self.policy.set_training_mode(True)
        self._update_learning_rate(self.policy.optimizer)
        self.replay_buffer.anneal(self._current_progress_remaining)
        parameters = list(self.q_net.parameters())
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            with th.no_grad():
                chooser = self.q_net(batch.next_observations) if self.double_q else None
                targets = td_targets(
                    batch.rewards,
                    batch.dones,
                    self.gamma if batch.discounts is None else batch.discounts,
                    self.q_net_target(batch.next_observations),
                    chooser,
                )
            values = self.q_net(batch.observations).gather(1, batch.actions.long())
            errors = targets - values.detach()
            for parameter in parameters:
                parameter.grad = None
            values.backward(weighted_td_gradient(errors, batch.weights, self.td_clip))
            if self.max_grad_norm is not None:
                th.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
            self.policy.optimizer.step()
            # As published, what is clipped is the error itself, so that no outlier dominates the priorities.
            clipped = errors if self.td_clip is None else errors.clamp(-self.td_clip, self.td_clip)
            self.replay_buffer.update_priorities(batch.indices, clipped)
        self._n_updates += gradient_steps
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
        self.logger.record_mean("train/loss", weighted_td_loss(errors, batch.weights, self.td_clip).item())
        self.logger.record_mean("train/td_error", errors.abs().mean().item())
        if isinstance(self.replay_buffer, PrioritizedReplayBuffer):
            self.logger.record("train/beta", self.replay_buffer.beta)
            self.logger.record("train/max_priority", self.replay_buffer.max_priority)
            self.logger.record_mean("train/weight", batch.weights.mean().item())

    def predict(
        self,
        observation: Any,
        state: tuple[np.ndarray[Any, Any], ...] | None = None,
        episode_start: np.ndarray[Any, Any] | None = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray[Any, Any], tuple[np.ndarray[Any, Any], ...] | None]:
        """Act, at random with the exploration rate unless deterministic.

        :param observation: one, or ``(n_envs, ...)``
        :param state: not used, as the policy is not recurrent
        :param episode_start: not used
        :param deterministic: True: without exploration
        :return: actions ``(n_envs,)``, ``()`` for one observation, and the state as it came
        """
        reject_reset_result(observation)
        vectorized = self.policy.is_vectorized_observation(observation)
        first = next(iter(observation.values())) if isinstance(observation, dict) else observation
        n = len(first) if vectorized else 1
        explores = np.zeros(n, bool) if deterministic else np.random.random_sample(n) < self.exploration_rate
        if explores.all():
            actions = np.zeros(n, dtype=np.int64)
        else:
            actions = np.reshape(self.policy.predict(observation, deterministic=True)[0], n)
        for env in np.flatnonzero(explores):
            actions[env] = self.action_space.sample()
        return (actions if vectorized else actions.squeeze(axis=0)), state

    def checkpoint_state(self) -> dict[str, Any]:
        """Return the state that Stable-Baselines3 does not save."""
        return {"n_calls": self._n_calls, "exploration_rate": self.exploration_rate}

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`checkpoint_state` returned.

        :param state: of a checkpoint
        """
        self._n_calls, self.exploration_rate = state["n_calls"], state["exploration_rate"]


def _are_image_stacks(space: spaces.Space[Any]) -> bool:
    shape = space.shape or ()
    return space.dtype == np.uint8 and len(shape) == 3 and shape[0] > 1 and min(shape[1:]) >= 36
