"""Prioritized experience replay (Schaul et al. 2016)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces

from rlexp.buffers.priorities import Priorities, Proportional, RankBased
from rlexp.buffers.replay import Array, Indices, NStepReplay, Weights

# Schaul et al. 2016, section 4: alpha and the initial beta of each scheme.
PUBLISHED = {"proportional": (0.6, 0.4), "rank": (0.7, 0.5)}


class PrioritizedReplayBuffer(NStepReplay):
    """Samples transitions by priority: their absolute TD error.

    New transitions get the largest priority seen so far, initially 1. With an algorithm that does not report TD errors,
    such as Stable-Baselines3's own, sampling is uniform.

    :param buffer_size: transitions of all environments together
    :param observation_space: Box, Discrete, MultiDiscrete, MultiBinary, or a Dict of them
    :param action_space: as in Stable-Baselines3
    :param device: where samples go
    :param n_envs: environments stepped together
    :param scheme: ``"proportional"`` or ``"rank"``
    :param alpha: exponent of the priorities, 0 for uniform sampling; None: the published value of the scheme
    :param beta: initial exponent of the importance weights; None: the published value of the scheme
    :param priority_epsilon: added to absolute TD errors, so that every transition can be sampled again
    :param weights_by: importance weights are divided by the largest one of all stored transitions, ``"buffer"``, or of
        the batch, ``"batch"``
    :param sort_every: sort the heap of ``"rank"`` after so many new transitions; None: the capacity, as published
    :param kwargs: of :class:`~rlexp.buffers.replay.NStepReplay`
    :raises ValueError: when a value is not allowed
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: th.device | str = "auto",
        n_envs: int = 1,
        *,
        scheme: str = "proportional",
        alpha: float | None = None,
        beta: float | None = None,
        priority_epsilon: float = 1e-6,
        weights_by: str = "buffer",
        sort_every: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(buffer_size, observation_space, action_space, device, n_envs, **kwargs)
        if scheme not in PUBLISHED:
            raise ValueError(f"scheme: '{scheme}' given, allowed are {', '.join(PUBLISHED)}")
        if weights_by not in ("buffer", "batch"):
            raise ValueError(f"weights_by: '{weights_by}' given, allowed are buffer, batch")
        self.alpha = PUBLISHED[scheme][0] if alpha is None else alpha
        self.initial_beta = PUBLISHED[scheme][1] if beta is None else beta
        if self.alpha < 0 or not 0 <= self.initial_beta <= 1 or priority_epsilon < 0:
            raise ValueError("alpha and priority_epsilon must be at least 0, beta from 0 to 1")
        self.beta = self.initial_beta
        self.scheme = scheme
        self.priority_epsilon = priority_epsilon
        self.weights_by = weights_by
        self.max_priority = 1.0
        self.priorities: Priorities = (
            Proportional(self.capacity, self.alpha)
            if scheme == "proportional"
            else RankBased(self.capacity, self.alpha, sort_every or self.capacity)
        )

    def _advance(self, rows: int) -> None:
        begin, end = self.pos * self.n_envs, (self.pos + rows) * self.n_envs
        super()._advance(rows)
        self.priorities.fill(begin, end, self.max_priority)
        self.priorities.note_added(end - begin)

    def _draw(self, batch_size: int) -> tuple[Indices, Weights]:
        uniforms = np.random.random_sample(batch_size)
        return self.priorities.draw(uniforms, self.beta, self.weights_by == "batch")

    def anneal(self, progress_remaining: float) -> None:
        """Increase β linearly to 1 at the end of training.

        :param progress_remaining: from 1 to 0
        """
        self.beta = 1.0 - (1.0 - self.initial_beta) * progress_remaining

    def update_priorities(self, indices: Indices, td_errors: Array | th.Tensor) -> None:
        """Set priorities to ``|δ| + ε``; of a repeated index the last error counts.

        :param indices: of a sample, ``(n,)``
        :param td_errors: ``(n,)`` or ``(n, 1)``, signed or absolute
        :raises ValueError: when one is not finite
        :raises IndexError: when an index is not stored
        """
        errors = (
            td_errors.detach().cpu().numpy() if isinstance(td_errors, th.Tensor) else np.asarray(td_errors)
        )
        priorities = np.abs(errors.reshape(-1), dtype=np.float64) + self.priority_epsilon
        if len(indices) and not self.full and indices.max() >= len(self):
            raise IndexError(f"index {indices.max()} given, {len(self)} transitions are stored")
        self.priorities.put(indices, priorities)
        self.max_priority = max(self.max_priority, float(priorities.max(initial=0.0)))

    def checkpoint_state(self) -> dict[str, Any]:
        """Return the complete state as views and JSON values; nothing large is copied."""
        return {
            **super().checkpoint_state(),
            "priorities": self.priorities.state(),
            "max_priority": self.max_priority,
            "beta": self.beta,
        }

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`checkpoint_state` returned."""
        super().load_checkpoint_state(state)
        self.priorities.load_state(state["priorities"])
        self.max_priority, self.beta = state["max_priority"], state["beta"]
