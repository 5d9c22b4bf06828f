"""Base classes of SAC with a recurrent policy."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3 import SAC
from stable_baselines3.common.noise import ActionNoise
from stable_baselines3.common.policies import BasePolicy

from rlexp.algos.common.base import ValidatedAlgorithm, reject_reset_result
from rlexp.algos.common.saved_replay import SavedReplay
from rlexp.buffers.sequence_replay import SequenceReplay
from rlexp.errors import UsageError
from rlexp.losses.sac import ent_coef_loss

Array = npt.NDArray[Any]
RecurrentState = tuple[th.Tensor, ...]


class RecurrentSACPolicy(BasePolicy, ABC):
    """Policy with a recurrent state: tensors ``(n_envs, ...)`` that are 0 at the beginning of an episode."""

    observation_dim: int
    action_dim: int

    def __init__(
        self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any], **kwargs: Any
    ) -> None:
        for what, space in (("observations", observation_space), ("actions", action_space)):
            if not isinstance(space, spaces.Box) or len(space.shape) != 1:
                raise UsageError(
                    f"{type(self).__name__} needs {what} in one vector, the environment has {space}"
                )
        super().__init__(observation_space, action_space, squash_output=True, **kwargs)
        self.observation_dim = int(np.prod(observation_space.shape or ()))
        self.action_dim = int(np.prod(action_space.shape or ()))

    @abstractmethod
    def initial_state(self, n_envs: int) -> RecurrentState:
        """Return the recurrent state at the beginning of an episode."""

    @abstractmethod
    def act(
        self, observations: th.Tensor, state: RecurrentState, starts: th.Tensor, deterministic: bool
    ) -> tuple[th.Tensor, RecurrentState]:
        """Choose actions.

        :param observations: ``(n_envs, observation_dim)``
        :param state: 0 where an episode begins
        :param starts: whether an episode begins, ``(n_envs,)``
        :param deterministic: False: actions are sampled
        :return: actions from -1 to 1, ``(n_envs, action_dim)``, and the state after the observations, which does not
            include these actions yet; see :meth:`update_state`
        """

    @abstractmethod
    def update_state(self, state: RecurrentState, actions: th.Tensor) -> RecurrentState:
        """Return the state after actions from -1 to 1, ``(n_envs, action_dim)``, were taken."""

    def _predict(self, observation: Any, deterministic: bool = False) -> th.Tensor:
        n = len(observation)
        starts = th.ones(n, dtype=th.bool, device=self.device)
        return self.act(observation, self.initial_state(n), starts, deterministic)[0]

    def forward(self, observation: Any, deterministic: bool = False) -> th.Tensor:
        """Act as at the beginning of an episode."""
        return self._predict(observation, deterministic)

    @th.no_grad()
    def step(
        self,
        observations: Array,
        state: tuple[Array, ...] | None,
        episode_start: Array | None,
        deterministic: bool,
    ) -> tuple[th.Tensor, RecurrentState]:
        """Act on arrays ``(n_envs, ...)``; see :meth:`act`."""
        tensor = th.as_tensor(observations, dtype=th.float32, device=self.device)
        n = len(tensor)
        if state is None:
            current, starts = self.initial_state(n), th.ones(n, dtype=th.bool, device=self.device)
        else:
            current = tuple(th.as_tensor(part, device=self.device) for part in state)
            starts = th.zeros(n, dtype=th.bool, device=self.device)
            if episode_start is not None and np.any(episode_start):
                starts = th.as_tensor(np.asarray(episode_start, dtype=bool), device=self.device)
                current = tuple(
                    th.where(starts.view(-1, *[1] * (part.dim() - 1)), th.zeros_like(part), part)
                    for part in current
                )
        return self.act(tensor, current, starts, deterministic)

    def predict(
        self,
        observation: Any,
        state: tuple[Array, ...] | None = None,
        episode_start: Array | None = None,
        deterministic: bool = False,
    ) -> tuple[Array, tuple[Array, ...] | None]:
        """Act, and update the recurrent state.

        :param observation: one, or ``(n_envs, observation_dim)``
        :param state: what the last call returned; None: the beginning of an episode
        :param episode_start: where the state is reset because an episode begins, ``(n_envs,)``
        :param deterministic: False: actions are sampled
        :return: actions in the range of the action space, and the state
        """
        reject_reset_result(observation)
        self.set_training_mode(False)
        vectorized = self.is_vectorized_observation(observation)
        observations = np.asarray(observation).reshape(-1, self.observation_dim)
        actions, current = self.step(observations, state, episode_start, deterministic)
        after = self.update_state(current, actions)
        assert isinstance(self.action_space, spaces.Box)
        scaled = actions.cpu().numpy().reshape(-1, *self.action_space.shape)
        unscaled = np.clip(self.unscale_action(scaled), self.action_space.low, self.action_space.high)
        return (unscaled if vectorized else unscaled[0]), tuple(part.cpu().numpy() for part in after)

    def set_training_mode(self, mode: bool) -> None:
        """Switch modes; the base class walks through every module even when nothing changes."""
        if mode != self.training:
            super().set_training_mode(mode)


class RecurrentSAC(ValidatedAlgorithm, SavedReplay, SAC):
    """SAC whose policy is a :class:`RecurrentSACPolicy` and whose replay buffer samples sequences; a base class."""

    policy: RecurrentSACPolicy  # type: ignore[assignment]
    replay_buffer: SequenceReplay
    # Carried from rollout to rollout; checkpoints save it under this name.
    _last_lstm_states: tuple[Array, ...] | None

    def __init__(self, policy: str | type[RecurrentSACPolicy], env: Any, **sac: Any) -> None:
        self._last_lstm_states = None
        max_grad_norm = sac.pop("max_grad_norm", None)
        self.max_grad_norm = math.inf if max_grad_norm is None else float(max_grad_norm)
        sac["policy_kwargs"] = dict(sac.get("policy_kwargs") or {})
        super().__init__(policy, env, replay_buffer_class=SequenceReplay, **sac)

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
            self._last_lstm_states = None
        return found

    def _sample_action(
        self, learning_starts: int, action_noise: ActionNoise | None = None, n_envs: int = 1
    ) -> tuple[Array, Array]:
        """Act, at random before learning starts; the recurrent state is updated from the first step on."""
        assert self._last_obs is not None
        observations = np.asarray(self._last_obs).reshape(n_envs, -1)
        chosen, state = self.policy.step(
            observations, self._last_lstm_states, self._last_episode_starts, deterministic=False
        )
        if self.num_timesteps < learning_starts:
            drawn = np.array([self.action_space.sample() for _ in range(n_envs)])
            scaled = np.asarray(self.policy.scale_action(drawn), dtype=np.float32)
        else:
            scaled = chosen.cpu().numpy()
        if action_noise is not None:
            scaled = np.clip(scaled + action_noise(), -1, 1).astype(np.float32)
        updated = self.policy.update_state(state, th.as_tensor(scaled, device=self.device))
        self._last_lstm_states = tuple(part.cpu().numpy() for part in updated)
        return self.policy.unscale_action(scaled), scaled

    def _store_transition(
        self, replay_buffer: Any, buffer_action: Array, new_obs: Any, reward: Array, dones: Array, infos: Any
    ) -> None:
        super()._store_transition(replay_buffer, buffer_action, new_obs, reward, dones, infos)
        self._last_episode_starts = dones

    def _ent_coef(self) -> th.Tensor:
        """Return the current entropy coefficient, without gradient."""
        return self.ent_coef_tensor if self.log_ent_coef is None else self.log_ent_coef.detach().exp()

    def _update_ent_coef(self, log_probs: th.Tensor, mask: th.Tensor | None) -> None:
        """Take an optimizer step on the entropy coefficient if it is learned."""
        if self.ent_coef_optimizer is None or self.log_ent_coef is None:
            return
        assert isinstance(self.target_entropy, float)
        loss = ent_coef_loss(self.log_ent_coef, log_probs, self.target_entropy, mask)
        self.ent_coef_optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.ent_coef_optimizer.step()

    def _descend(self, module: Any, loss: th.Tensor) -> None:
        """Take one step of a module's optimizer on a loss, with its gradient clipped.

        The loss has to be computed after the last step of every network in its graph: a step changes weights in place,
        and a backward pass through them would mix old activations with new weights.
        """
        module.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if np.isfinite(self.max_grad_norm):
            th.nn.utils.clip_grad_norm_(module.parameters(), self.max_grad_norm)
        module.optimizer.step()

    def _update_target(self, module: th.nn.Module, target: th.nn.Module) -> None:
        """Move a target network towards its online network (Polyak averaging)."""
        with th.no_grad():
            th._foreach_lerp_(list(target.parameters()), list(module.parameters()), self.tau)
