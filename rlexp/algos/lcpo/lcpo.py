"""Loop-clipping policy optimisation.

Wu & Rasmussen 2021, "Clipping loops for sample-efficient dialogue policy optimisation", NAACL.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3 import PPO
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.utils import update_learning_rate
from torch.optim import Optimizer

from rlexp.algos.common.base import ValidatedAlgorithm, require_discrete_vectors
from rlexp.algos.lcpo.buffers import LoopClippingRolloutBuffer, MaskableLoopClippingRolloutBuffer
from rlexp.algos.lcpo.spec import LCPOConfig


class LoopClipping(ValidatedAlgorithm, OnPolicyAlgorithm):
    """What LCPO adds to PPO, with or without action masks: Algorithm 1 before every update.

    :param policy: as in PPO
    :param env: as in PPO; vector observations and discrete actions
    :param clip_gae: advantages outside loops are at least ``R = r + (γ - 1) V`` (eq. 13)
    :param clip_lae: advantages inside loops are at most ``R`` (eq. 14)
    :param clip_n_hop_loops: cut out stretches that come back to the state they began in (definition 1)
    :param clip_termination_loops: cut off the last transition of an episode that ended with a reward of 0
        or less, unless by a time limit (definition 2)
    :param loop_similarity: cosine similarity above which two states are the same
    :param advantage_scaling: ``"rms"``, ``"standard"`` or ``"none"``; see
        :func:`~rlexp.losses.lcpo.scale_advantages`
    :param learning_rate_decay_steps: ours, not the paper's: timesteps after which the learning rate has halved, as
        ``learning_rate / (1 + timesteps / learning_rate_decay_steps)``; None: constant. Once most dialogues succeed,
        what is left in the advantages is mostly noise, scaled up to unit size; at a constant rate single runs then
        lose ten points and more for a while.
    :param max_grad_norm: as in PPO; None: gradients are not clipped
    :param ppo: every other argument of PPO's constructor but ``normalize_advantage``
    :raises UsageError: when actions are not discrete or observations are not one vector: two states count as the same
        by the angle between them, which the paper defines for belief states and which in continuous control is small
        from any step to the next
    """

    config = LCPOConfig
    rollout_buffer: LoopClippingRolloutBuffer
    _buffer_class: type[LoopClippingRolloutBuffer]

    def __init__(
        self,
        policy: str | type[ActorCriticPolicy],
        env: GymEnv | str,
        *,
        clip_gae: bool = True,
        clip_lae: bool = True,
        clip_n_hop_loops: bool = True,
        clip_termination_loops: bool = True,
        loop_similarity: float = 0.99,
        advantage_scaling: str = "rms",
        learning_rate_decay_steps: int | None = None,
        max_grad_norm: float | None = None,
        **ppo: Any,
    ) -> None:
        self.clip_gae = clip_gae
        self.clip_lae = clip_lae
        self.clip_n_hop_loops = clip_n_hop_loops
        self.clip_termination_loops = clip_termination_loops
        self.loop_similarity = loop_similarity
        self.advantage_scaling = advantage_scaling
        self.learning_rate_decay_steps = learning_rate_decay_steps
        ppo = {"rollout_buffer_class": self._buffer_class, **ppo}
        # The buffer scales the advantages, over the whole rollout; PPO's own way is per minibatch.
        ppo["normalize_advantage"] = False
        ppo["max_grad_norm"] = math.inf if max_grad_norm is None else max_grad_norm
        super().__init__(policy, env, **ppo)

    def _setup_model(self) -> None:
        require_discrete_vectors(type(self).__name__, self.observation_space, self.action_space)
        super()._setup_model()

    def _update_info_buffer(
        self, infos: list[dict[str, Any]], dones: npt.NDArray[np.bool_] | None = None
    ) -> None:
        """Store time limits, which ``collect_rollouts`` does not pass to the rollout buffer."""
        super()._update_info_buffer(infos, dones)
        truncated = [info.get("TimeLimit.truncated", False) for info in infos]
        self.rollout_buffer.truncated[self.rollout_buffer.pos] = truncated

    def _update_learning_rate(self, optimizers: list[Optimizer] | Optimizer) -> None:
        """Let the rate decay with the timesteps, whatever the budget is counted in."""
        super()._update_learning_rate(optimizers)
        if self.learning_rate_decay_steps is None:
            return
        decay = 1 / (1 + self.num_timesteps / self.learning_rate_decay_steps)
        rate = decay * self.lr_schedule(self._current_progress_remaining)
        self.logger.record("train/learning_rate", rate)
        for optimizer in optimizers if isinstance(optimizers, list) else [optimizers]:
            update_learning_rate(optimizer, rate)

    def train(self) -> None:
        """Clip loops and advantages, then update as PPO does."""
        statistics = self.rollout_buffer.clip_loops(
            self._last_obs,  # type: ignore[arg-type]
            clip_gae=self.clip_gae,
            clip_lae=self.clip_lae,
            clip_n_hop_loops=self.clip_n_hop_loops,
            clip_termination_loops=self.clip_termination_loops,
            loop_similarity=self.loop_similarity,
            advantage_scaling=self.advantage_scaling,
        )
        super().train()
        for name, value in statistics.items():
            self.logger.record(name, value)


class LCPO(LoopClipping, PPO):
    """PPO that clips loops: ``LCPO("MlpPolicy", env).learn(10_000)``.

    For its arguments see :class:`LoopClipping` and :class:`stable_baselines3.PPO`.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": ActorCriticPolicy}
    _buffer_class = LoopClippingRolloutBuffer


class MaskableLCPO(LoopClipping, MaskablePPO):  # type: ignore[misc]
    """:class:`LCPO` where ``action_masks()`` rule actions out, on top of sb3-contrib's MaskablePPO."""

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"MlpPolicy": MaskableActorCriticPolicy}
    _buffer_class = MaskableLoopClippingRolloutBuffer
