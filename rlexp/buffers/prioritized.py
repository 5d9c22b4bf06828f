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
    """Draws transitions by their TD errors.

    New transitions get the largest priority seen so far, which is 1 to begin with. Where a learner does not report TD
    errors, as Stable-Baselines3's own do not, every transition keeps that priority and draws are uniform.

    :param buffer_size: see :class:`~rlexp.buffers.replay.NStepReplay`, likewise every word that is not listed here
    :param scheme: ``"proportional"`` or ``"rank"``
    :param alpha: how much priorities matter, 0 being uniform; None: as published for the scheme
    :param beta: how much importance weights correct to begin with; None: as published for the scheme
    :param priority_epsilon: added to absolute TD errors, so that a transition without error is drawn again some day
    :param weights_by: ``"buffer"``: the largest weight that any stored transition could have is 1; ``"batch"``: the
        largest one in the batch
    :param sort_every: sort the heap of ``"rank"`` after so many new transitions; None: the capacity, as published
    :param words: of :class:`~rlexp.buffers.replay.NStepReplay`
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
        **words: Any,
    ) -> None:
        super().__init__(buffer_size, observation_space, action_space, device, n_envs, **words)
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
        """Let β grow linearly to 1, which it reaches at the end of training."""
        self.beta = 1.0 - (1.0 - self.initial_beta) * progress_remaining

    def update_priorities(self, indices: Indices, td_errors: Array | th.Tensor) -> None:
        """Give transitions the priority ``|δ| + ε``; of one named twice the last error counts.

        :param indices: ``(n,)``, as they came with a sample
        :param td_errors: ``(n,)`` or ``(n, 1)``, of either sign
        :raises ValueError: when one is not finite
        :raises IndexError: when a transition has not been stored
        """
        errors = (
            td_errors.detach().cpu().numpy() if isinstance(td_errors, th.Tensor) else np.asarray(td_errors)
        )
        priorities = np.abs(errors.reshape(-1), dtype=np.float64) + self.priority_epsilon
        if len(indices) and not self.full and indices.max() >= len(self):
            raise IndexError(f"transition {indices.max()} given, {len(self)} are stored")
        self.priorities.put(indices, priorities)
        self.max_priority = max(self.max_priority, float(priorities.max(initial=0.0)))

    def checkpoint_state(self) -> dict[str, Any]:
        """Return everything as views and JSON values; nothing large is copied."""
        return {
            **super().checkpoint_state(),
            "priorities": self.priorities.state(),
            "max_priority": self.max_priority,
            "beta": self.beta,
        }

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Take back a state."""
        super().load_checkpoint_state(state)
        self.priorities.load_state(state["priorities"])
        self.max_priority, self.beta = state["max_priority"], state["beta"]
