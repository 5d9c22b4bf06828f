"""One shard of the replay buffer, in a separate process; without torch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from rlexp.buffers.prioritized_sequences import Keys, PrioritizedSequences
from rlexp.buffers.sequence_builder import SequenceLayout, Sequences

NewSequences = tuple[Sequences, npt.NDArray[np.float32] | None]
"""Sequences and their initial priorities, ``(n,)``; None: the largest priority so far."""


class ShardStats(NamedTuple):
    """State of a shard, sent with each of its answers."""

    size: int
    """Sequences stored."""
    priority_mass: float
    """Sum of ``priority ** alpha``: how likely the shard is to be sampled, relative to the others."""
    min_priority_mass: float
    """The smallest term of that sum."""
    max_priority: float


class Batch(NamedTuple):
    """Sampled sequences, still as arrays."""

    sequences: Sequences
    keys: Keys
    weights: npt.NDArray[np.float64]
    """Importance weights relative to the largest one of this shard, ``(n,)``."""
    stats: ShardStats


class ReplayShard:
    """A :class:`~rlexp.buffers.prioritized_sequences.PrioritizedSequences` that answers messages.

    :param seed: of its sampling
    :param capacity: sequences it can hold
    :param layout: how episodes are cut into sequences
    :param observation_space: of the environments
    :param n_actions: of the environments
    :param state_size: numbers in a recurrent state
    :param scheme: ``"proportional"`` or ``"rank"``
    :param alpha: exponent of the priorities, 0 for uniform sampling
    :param beta: exponent of the importance weights, 1 for a full correction
    :param priority_epsilon: added to every priority
    """

    def __init__(
        self,
        seed: int,
        capacity: int,
        layout: SequenceLayout,
        observation_space: spaces.Space[Any],
        n_actions: int,
        state_size: int,
        scheme: str,
        alpha: float,
        beta: float,
        priority_epsilon: float,
    ) -> None:
        self._random = np.random.default_rng(seed)
        self._store = PrioritizedSequences(
            capacity, layout, observation_space, n_actions, state_size, scheme, alpha, beta, priority_epsilon
        )

    def add(self, new: NewSequences) -> ShardStats:
        """Store sequences with their priorities."""
        self._store.add(*new)
        return self._stats()

    def sample(self, n: int) -> Batch:
        """Sample sequences by their priorities, with replacement.

        :param n: how many
        :raises ValueError: when the shard is empty
        """
        keys, weights = self._store.draw(n, self._random.random(n))
        return Batch(self._store.take(keys), keys, weights, self._stats())

    def update_priorities(self, keys: Keys, priorities: npt.NDArray[Any]) -> None:
        """Set new priorities; sequences that were overwritten since are skipped.

        :param keys: from the batch, ``(n,)``
        :param priorities: ``(n,)``
        """
        self._store.update_priorities(keys, priorities)

    def _stats(self) -> ShardStats:
        mass, least = self._store.priorities.mass()
        return ShardStats(len(self._store), mass, least, self._store.max_priority)
