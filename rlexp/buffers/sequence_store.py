"""Batches of sequences for a learner, demonstrations mixed in (Kapturowski et al. 2019; Paine et al. 2019)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch as th

from rlexp.buffers.sequence_builder import Array, Sequences, join
from rlexp.buffers.sequence_ring import Keys, PrioritizedSequences


class SequenceSample(NamedTuple):
    """B sequences as tensors, time-major; rows behind the longest of them are left out."""

    observations: th.Tensor | dict[str, th.Tensor]
    """``(rows, B, ...)``."""
    last_actions: th.Tensor
    """``(rows, B)`` int64; ``n_actions`` stands for none."""
    last_rewards: th.Tensor
    """``(rows, B)``."""
    lengths: th.Tensor
    """``(B,)`` int64."""
    terminated: th.Tensor
    """``(B,)`` bool."""
    burnt: th.Tensor
    """``(B,)`` bool."""
    states: th.Tensor
    """``(B, state_size)``."""
    weights: th.Tensor
    """Importance weights, ``(B,)``."""
    demonstrated: th.Tensor
    """``(B,)``: 1 for demonstrations."""


class Drawn(NamedTuple):
    """A batch and what it takes to report its priorities."""

    sample: SequenceSample
    agent_keys: Keys
    """Of the sequences that come first in the batch."""
    demonstration_keys: Keys
    """Of those that come after them."""


class MixedSequences:
    """The agent's own sequences and, in a buffer of their own, demonstrations.

    Each element of a batch is a demonstration with probability ρ, independently of the others (Paine et al. 2019,
    section 3), so that the number of them is binomial. Importance weights are relative to the largest one of each
    buffer: how much demonstrations weigh against the rest is what ρ is for.

    :param agent: the agent's own
    :param demonstrations: None: there are none
    :param share: ρ, from 0 to 1
    :param device: where samples go
    """

    def __init__(
        self,
        agent: PrioritizedSequences,
        demonstrations: PrioritizedSequences | None,
        share: float,
        device: th.device,
    ) -> None:
        self.agent = agent
        self.demonstrations = demonstrations
        self.share = 0.0 if demonstrations is None else share
        self.device = device
        self.agent_draws = 0
        self.demonstration_draws = 0

    def sample(self, batch_size: int, share: float | None = None) -> Drawn:
        """Draw a batch, with replacement: the agent's sequences first, then the demonstrations.

        While the agent has none, all are demonstrations.

        :param share: in place of ρ; 1 to learn from demonstrations alone
        :raises ValueError: when there is nothing to draw from
        """
        share = self.share if share is None else share
        if self.demonstrations is not None and len(self.agent) == 0:
            share = 1.0
        demonstrated = int((np.random.random_sample(batch_size) < share).sum()) if share > 0 else 0
        agent_keys, weights = self.agent.draw(batch_size - demonstrated)
        parts = [self.agent.take(agent_keys)] if len(agent_keys) else []
        demonstration_keys = np.zeros(0, np.int64)
        if demonstrated:
            assert self.demonstrations is not None
            demonstration_keys, others = self.demonstrations.draw(demonstrated)
            parts.append(self.demonstrations.take(demonstration_keys))
            weights = np.concatenate([weights, others])
        self.agent_draws += len(agent_keys)
        self.demonstration_draws += demonstrated
        is_demonstration = np.arange(batch_size) >= len(agent_keys)
        sample = tensors(join(parts), weights, is_demonstration, self.agent.window.burn_in, self.device)
        return Drawn(sample, agent_keys, demonstration_keys)

    def update_priorities(self, drawn: Drawn, priorities: Array) -> None:
        """Report the priorities of a batch, ``(B,)``, each buffer its own."""
        n = len(drawn.agent_keys)
        self.agent.update_priorities(drawn.agent_keys, priorities[:n])
        if self.demonstrations is not None:
            self.demonstrations.update_priorities(drawn.demonstration_keys, priorities[n:])

    def checkpoint_state(self) -> dict[str, Any]:
        """Return what learning on needs; demonstrations are read from their file again."""
        others = self.demonstrations
        return {
            "agent": self.agent.checkpoint_state(),
            "demonstrations": None if others is None else others.checkpoint_state(content=False),
            "draws": (self.agent_draws, self.demonstration_draws),
        }

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Take back a state.

        :raises ValueError: when the demonstrations are other ones
        """
        self.agent.load_checkpoint_state(state["agent"])
        if self.demonstrations is not None:
            self.demonstrations.load_checkpoint_state(state["demonstrations"])
        self.agent_draws, self.demonstration_draws = state["draws"]


def tensors(
    sequences: Sequences, weights: Array, demonstrated: Array, burn_in: int, device: th.device
) -> SequenceSample:
    """Return sequences as a batch for a learner.

    :param weights: ``(n,)``
    :param demonstrated: bool, ``(n,)``
    :param burn_in: rows before the windows
    """
    rows = burn_in + int(sequences.lengths.max()) + 1

    def tensor(array: Array) -> th.Tensor:
        return th.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)

    def by_time(array: Array) -> th.Tensor:
        return tensor(array[:, :rows].swapaxes(0, 1))

    observed = sequences.observations
    return SequenceSample(
        {key: by_time(part) for key, part in observed.items()}
        if isinstance(observed, dict)
        else by_time(observed),
        by_time(sequences.last_actions),
        by_time(sequences.last_rewards),
        tensor(sequences.lengths),
        tensor(sequences.terminated),
        tensor(sequences.burnt),
        tensor(sequences.states),
        tensor(weights.astype(np.float32)),
        tensor(demonstrated.astype(np.float32)),
    )
