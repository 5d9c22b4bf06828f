"""Batches of sequences, with demonstrations mixed in (Kapturowski et al. 2019; Paine et al. 2019)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch as th

from rlexp.buffers.prioritized_sequences import Keys, PrioritizedSequences
from rlexp.buffers.sequence_builder import Array, Sequences, join


class SequenceSample(NamedTuple):
    """B sequences as tensors, time-major, ``T`` time steps up to the end of the longest; see :class:`Sequences`."""

    observations: th.Tensor | dict[str, th.Tensor]
    """``(T, B, ...)``."""
    last_actions: th.Tensor
    """``(T, B)`` int64; ``n_actions`` where there is none."""
    last_rewards: th.Tensor
    """``(T, B)``."""
    lengths: th.Tensor
    """``(B,)`` int64."""
    terminated: th.Tensor
    """``(B,)`` bool."""
    has_burn_in: th.Tensor
    """``(B,)`` bool."""
    states: th.Tensor
    """``(B, state_size)``."""
    weights: th.Tensor
    """Importance weights, ``(B,)``."""
    is_demonstration: th.Tensor
    """``(B,)``: 1 for demonstrations."""


class MixedSample(NamedTuple):
    """A batch and the keys that its new priorities need."""

    sample: SequenceSample
    agent_keys: Keys
    """Of the agent's sequences, which come first in the batch."""
    demonstration_keys: Keys
    """Of the demonstrations, which follow."""


class MixedSequences:
    """The agent's own sequences and, in a buffer of their own, demonstrations.

    Each element of a batch is a demonstration with probability ρ, independently of the others (Paine et al. 2019,
    section 3), so that their number is binomial. Importance weights are relative to the largest one of each buffer:
    how much demonstrations count against the rest is set by ρ.

    :param agent: the agent's own sequences
    :param demonstrations: None: there are none
    :param demonstration_ratio: ρ, from 0 to 1
    :param device: where samples go
    """

    def __init__(
        self,
        agent: PrioritizedSequences,
        demonstrations: PrioritizedSequences | None,
        demonstration_ratio: float,
        device: th.device,
    ) -> None:
        self.agent = agent
        self.demonstrations = demonstrations
        self.demonstration_ratio = 0.0 if demonstrations is None else demonstration_ratio
        self.device = device
        self.agent_draws = 0
        self.demonstration_draws = 0

    def sample(self, batch_size: int, demonstration_ratio: float | None = None) -> MixedSample:
        """Sample a batch, with replacement: the agent's sequences first, then the demonstrations.

        While there are no sequences of the agent, all are demonstrations.

        :param batch_size: B
        :param demonstration_ratio: instead of ρ; 1 to learn from demonstrations alone
        :raises ValueError: when both buffers are empty
        """
        demonstration_ratio = self.demonstration_ratio if demonstration_ratio is None else demonstration_ratio
        if self.demonstrations is not None and len(self.agent) == 0:
            demonstration_ratio = 1.0
        n_demonstrations = (
            int((np.random.random_sample(batch_size) < demonstration_ratio).sum())
            if demonstration_ratio > 0
            else 0
        )
        agent_keys, weights = self.agent.draw(batch_size - n_demonstrations)
        parts = [self.agent.take(agent_keys)] if len(agent_keys) else []
        demonstration_keys = np.zeros(0, np.int64)
        if n_demonstrations:
            assert self.demonstrations is not None
            demonstration_keys, others = self.demonstrations.draw(n_demonstrations)
            parts.append(self.demonstrations.take(demonstration_keys))
            weights = np.concatenate([weights, others])
        self.agent_draws += len(agent_keys)
        self.demonstration_draws += n_demonstrations
        is_demonstration = np.arange(batch_size) >= len(agent_keys)
        sample = tensors(join(parts), weights, is_demonstration, self.agent.layout.burn_in, self.device)
        return MixedSample(sample, agent_keys, demonstration_keys)

    def update_priorities(self, drawn: MixedSample, priorities: Array) -> None:
        """Set the priorities of a batch, in the buffers that its sequences came from.

        :param drawn: the batch
        :param priorities: ``(B,)``
        """
        n = len(drawn.agent_keys)
        self.agent.update_priorities(drawn.agent_keys, priorities[:n])
        if self.demonstrations is not None:
            self.demonstrations.update_priorities(drawn.demonstration_keys, priorities[n:])

    def checkpoint_state(self) -> dict[str, Any]:
        """Return the complete state; demonstrations are read from their file again."""
        others = self.demonstrations
        return {
            "agent": self.agent.checkpoint_state(),
            "demonstrations": None if others is None else others.checkpoint_state(content=False),
            "draws": (self.agent_draws, self.demonstration_draws),
        }

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`checkpoint_state` returned.

        :raises ValueError: when the demonstrations have changed
        """
        self.agent.load_checkpoint_state(state["agent"])
        if self.demonstrations is not None:
            self.demonstrations.load_checkpoint_state(state["demonstrations"])
        self.agent_draws, self.demonstration_draws = state["draws"]


def tensors(
    sequences: Sequences, weights: Array, is_demonstration: Array, burn_in: int, device: th.device
) -> SequenceSample:
    """Return sequences as a batch of tensors.

    :param sequences: n of them
    :param weights: importance weights, ``(n,)``
    :param is_demonstration: bool, ``(n,)``
    :param burn_in: time steps before those to learn from
    :param device: where the tensors go
    """
    length = burn_in + int(sequences.lengths.max()) + 1

    def tensor(array: Array) -> th.Tensor:
        return th.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)

    def by_time(array: Array) -> th.Tensor:
        return tensor(array[:, :length].swapaxes(0, 1))

    observed = sequences.observations
    return SequenceSample(
        {key: by_time(part) for key, part in observed.items()}
        if isinstance(observed, dict)
        else by_time(observed),
        by_time(sequences.last_actions),
        by_time(sequences.last_rewards),
        tensor(sequences.lengths),
        tensor(sequences.terminated),
        tensor(sequences.has_burn_in),
        tensor(sequences.states),
        tensor(weights.astype(np.float32)),
        tensor(is_demonstration.astype(np.float32)),
    )
