"""Trainable action mask (Wu, Tseng & Rasmussen 2020), a baseline of the LCPO paper.

Published is the idea: a model of the user learns to predict, for every action, termination, reward and the
similarity of the next dialogue state, and a mask made from these predictions blocks useless actions. All
else here is ours: one hidden layer for all actions, trained on replayed transitions between PPO's updates;
probabilities with thresholds; no mask until some transitions have been collected; and nothing blocked
where all would be.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch as th
from stable_baselines3 import PPO
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import GymEnv

from rlexp.algos.common.base import ValidatedAlgorithm, require_discrete_vectors
from rlexp.algos.tam.policies import MaskedPolicy
from rlexp.algos.tam.replay import TransitionReplay
from rlexp.algos.tam.spec import TAMConfig
from rlexp.losses.loops import stays
from rlexp.losses.tam import user_model_loss


class TAM(ValidatedAlgorithm, PPO):
    """PPO whose useless actions are blocked by a learned user model: ``TAM("MlpPolicy", env).learn(10_000)``.

    :param policy: as in PPO
    :param env: as in PPO; vector observations and discrete actions
    :param termination_threshold: an action is blocked when the episode ends with more than this probability
        and the reward predicted is 0 or less
    :param similarity_threshold: an action is blocked when the state stays the same with more than this
        probability
    :param loop_similarity: cosine similarity above which two states are the same
    :param mask_after: number of transitions before anything is blocked
    :param user_model_hidden: hidden units of the user model
    :param user_model_learning_rate: of its own Adam
    :param user_model_updates: its gradient steps after each of PPO's rollouts
    :param user_model_batch_size: transitions per gradient step
    :param buffer_size: transitions kept to learn from
    :param max_grad_norm: as in PPO; None: gradients are not clipped
    :param ppo: every other argument of PPO's constructor
    :raises UsageError: when actions are not discrete or observations are not one vector
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": MaskedPolicy}
    config = TAMConfig
    policy: MaskedPolicy

    def __init__(
        self,
        policy: str | type[MaskedPolicy],
        env: GymEnv | str,
        *,
        termination_threshold: float = 0.5,
        similarity_threshold: float = 0.5,
        loop_similarity: float = 0.99,
        mask_after: int = 500,
        user_model_hidden: int = 64,
        user_model_learning_rate: float = 1e-3,
        user_model_updates: int = 40,
        user_model_batch_size: int = 64,
        buffer_size: int = 5000,
        max_grad_norm: float | None = None,
        **ppo: Any,
    ) -> None:
        self.loop_similarity = loop_similarity
        self.mask_after = mask_after
        self.user_model_learning_rate = user_model_learning_rate
        self.user_model_updates = user_model_updates
        self.user_model_batch_size = user_model_batch_size
        self.buffer_size = buffer_size
        self._truncated: list[list[bool]] = []
        ppo["max_grad_norm"] = math.inf if max_grad_norm is None else max_grad_norm
        ppo["policy_kwargs"] = {
            **(ppo.get("policy_kwargs") or {}),
            "termination_threshold": termination_threshold,
            "similarity_threshold": similarity_threshold,
            "user_model_hidden": user_model_hidden,
        }
        super().__init__(policy, env, **ppo)

    def _setup_model(self) -> None:
        require_discrete_vectors(type(self).__name__, self.observation_space, self.action_space)
        super()._setup_model()
        user_model = self.policy.user_model
        self.user_model_optimizer = th.optim.Adam(
            user_model.parameters(), lr=self.user_model_learning_rate, fused=True
        )
        self.replay = TransitionReplay(self.buffer_size, self.policy.features_dim)

    def collect_rollouts(self, *args: Any, **kwargs: Any) -> bool:
        """Collect a rollout; what a callback stopped before its end is forgotten, as the rollout buffer forgets it."""
        self._truncated.clear()
        return super().collect_rollouts(*args, **kwargs)

    def _update_info_buffer(
        self, infos: list[dict[str, Any]], dones: npt.NDArray[np.bool_] | None = None
    ) -> None:
        """Store time limits, which ``collect_rollouts`` does not pass to the rollout buffer."""
        super()._update_info_buffer(infos, dones)
        self._truncated.append([info.get("TimeLimit.truncated", False) for info in infos])

    def train(self) -> None:
        """Update the policy as PPO does, under the mask that it acted with; then let the user model learn."""
        self._store_rollout()
        super().train()
        losses = [self._update_user_model() for _ in range(self.user_model_updates)]
        # Leftover gradients would count in PPO's clipping of the policy's gradient norm.
        self.user_model_optimizer.zero_grad()
        self.policy.masking.fill_(self.num_timesteps >= self.mask_after)
        self.logger.record("train/user_model_loss", float(np.mean(losses)))

    def _store_rollout(self) -> None:
        """Move the rollout's transitions to the replay, in the order in which they happened."""
        rollout = self.rollout_buffer
        n_steps, n_envs = rollout.rewards.shape
        observations = rollout.observations.reshape(n_steps, n_envs, -1)
        last = np.asarray(self._last_obs, dtype=np.float32).reshape(1, n_envs, -1)
        next_observations = np.concatenate([observations[1:], last])
        ended = np.concatenate([rollout.episode_starts[1:], [self._last_episode_starts]]).astype(np.bool_)
        similar = stays(
            observations.reshape(n_steps * n_envs, -1),
            next_observations.reshape(n_steps * n_envs, -1),
            self.loop_similarity,
        )
        # At a time limit the reward holds a bootstrapped value, and the state after is not in the rollout.
        kept = ~np.array(self._truncated, dtype=np.bool_).flatten()
        self.replay.add(
            observations=observations.reshape(n_steps * n_envs, -1)[kept],
            actions=rollout.actions.flatten()[kept],
            terminated=ended.flatten()[kept],
            rewards=rollout.rewards.flatten()[kept],
            similar=similar[kept],
            has_next=~ended.flatten()[kept],
        )

    def _update_user_model(self) -> float:
        batch = self.replay.sample(self.user_model_batch_size, self.device)
        loss = user_model_loss(self.policy.user_model(batch.observations), *batch[1:])
        self.user_model_optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.user_model_optimizer.step()
        return loss.item()

    def _get_torch_save_params(self) -> tuple[list[str], list[str]]:
        return ["policy", "policy.optimizer", "user_model_optimizer"], []

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "replay", "user_model_optimizer", "_truncated"]

    def checkpoint_state(self) -> dict[str, Any]:
        """Return what learning on needs beyond policy, optimizer and counters: nested dicts of arrays."""
        moments = self.user_model_optimizer.state_dict()["state"]
        return {
            "replay": self.replay.state(),
            "user_model_optimizer": {
                str(number): {name: value.clone() for name, value in moment.items()}
                for number, moment in moments.items()
            },
        }

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`checkpoint_state` returned."""
        self.replay.restore(state["replay"])
        optimizer = self.user_model_optimizer.state_dict()
        optimizer["state"] = {int(number): moment for number, moment in state["user_model_optimizer"].items()}
        self.user_model_optimizer.load_state_dict(optimizer)
