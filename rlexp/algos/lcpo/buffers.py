"""Rollout buffers that clip loops before they estimate advantages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch as th
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3.common.buffers import RolloutBuffer

from rlexp.losses.lcpo import clip_advantages, clip_thresholds, loop_advantages, scale_advantages
from rlexp.losses.loops import OUTSIDE, find_loops


class LoopClippingRolloutBuffer(RolloutBuffer):
    """Rollout buffer of :class:`~rlexp.algos.lcpo.lcpo.LCPO`."""

    truncated: npt.NDArray[np.bool_]
    last_values: npt.NDArray[Any]
    last_dones: npt.NDArray[np.bool_]

    def reset(self) -> None:
        """Empty the buffer."""
        super().reset()
        self.truncated = np.zeros((self.buffer_size, self.n_envs), dtype=np.bool_)

    def compute_returns_and_advantage(self, last_values: th.Tensor, dones: npt.NDArray[Any]) -> None:
        """Keep what :meth:`clip_loops` needs; advantages with the loops left in would be thrown away.

        :param last_values: values of the states after the rollout, one per environment
        :param dones: whether the last step ended an episode, shape ``(n_envs,)``
        """
        self.last_values = last_values.clone().cpu().numpy().flatten()
        self.last_dones = dones.astype(np.bool_)

    def segments(self) -> Iterator[tuple[int, slice, bool]]:
        """Yield each episode, or part of one, in the rollout: environment, steps, whether it ended there."""
        for env in range(self.n_envs):
            starts = (np.flatnonzero(self.episode_starts[1:, env]) + 1).tolist()
            for begin, end in pairwise([0, *starts, self.buffer_size]):
                yield env, slice(begin, end), end < self.buffer_size or bool(self.last_dones[env])

    def clip_loops(
        self,
        last_observations: npt.NDArray[Any],
        *,
        clip_gae: bool,
        clip_lae: bool,
        clip_n_hop_loops: bool,
        clip_termination_loops: bool,
        loop_similarity: float,
        advantage_scaling: str,
    ) -> dict[str, float]:
        """Fill ``advantages`` and ``returns`` as Algorithm 1 does (lines 2-15).

        :param last_observations: the states after the rollout, shape ``(n_envs, *observation)``
        :return: what to log
        """
        in_loop = np.zeros_like(self.truncated)
        failed = np.zeros_like(self.truncated)
        for env, steps, ended in self.segments():
            last = steps.stop - 1
            rewards, values = self.rewards[steps, env], self.values[steps, env]
            after_loop = np.full(len(rewards), OUTSIDE, dtype=np.int64)
            if clip_n_hop_loops:
                states = self.observations[steps, env].reshape(len(rewards), -1)
                if not ended:
                    states = np.vstack([states, last_observations[env].reshape(1, -1)])
                after_loop = find_loops(states, len(rewards), loop_similarity)
            failed[last, env] = ended and not self.truncated[last, env] and rewards[-1] <= 0
            advantages, targets = loop_advantages(
                rewards,
                np.append(values, 0.0 if ended else self.last_values[env]),
                after_loop,
                termination_loop=clip_termination_loops and bool(failed[last, env]),
                gamma=self.gamma,
                gae_lambda=self.gae_lambda,
            )
            in_loop[steps, env] = after_loop != OUTSIDE
            self.advantages[steps, env], self.returns[steps, env] = advantages, targets

        thresholds = clip_thresholds(self.rewards, self.values, self.gamma)
        # At a time limit Stable-Baselines3 adds γ V(next state) to the reward, so R is not known there.
        thresholds[self.truncated] = -np.inf
        useless = in_loop | failed if clip_termination_loops else in_loop
        clipped = clip_advantages(self.advantages, thresholds, useless, clip_gae, clip_lae)
        moved = clipped != self.advantages
        self.advantages = scale_advantages(clipped, advantage_scaling).astype(np.float32)
        return {
            "train/loop_fraction": float(in_loop.mean()),
            "train/failed_ending_fraction": float(failed.mean()),
            "train/clipped_gae_fraction": float((moved & ~useless).mean()),
            "train/clipped_lae_fraction": float((moved & useless).mean()),
        }


class MaskableLoopClippingRolloutBuffer(LoopClippingRolloutBuffer, MaskableRolloutBuffer):
    """Rollout buffer of :class:`~rlexp.algos.lcpo.lcpo.MaskableLCPO`."""
