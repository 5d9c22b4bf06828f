"""The replay's side: a process that remembers a part of the sequences; without torch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from rlexp.buffers.sequence_builder import Sequences, Window
from rlexp.buffers.sequence_ring import Keys, PrioritizedSequences

Complete = tuple[Sequences, npt.NDArray[np.float32] | None]
"""Sequences and their initial priorities; None: the largest so far."""


class Standing(NamedTuple):
    """What a shard says of itself with every answer."""

    held: int
    """Sequences stored."""
    mass: float
    """How likely the shard is to be drawn from, relative to others."""
    least: float
    """Mass of its least likely sequence."""
    max_priority: float


class Batch(NamedTuple):
    """Drawn sequences, still as arrays."""

    sequences: Sequences
    keys: Keys
    weights: npt.NDArray[np.float64]
    """Importance weights relative to the largest one of this shard, ``(n,)``."""
    standing: Standing


class ReplayShard:
    """A :class:`PrioritizedSequences` that answers messages.

    :param seed: of its draws
    :param capacity: see :class:`PrioritizedSequences`, likewise the rest
    """

    def __init__(
        self,
        seed: int,
        capacity: int,
        window: Window,
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
            capacity, window, observation_space, n_actions, state_size, scheme, alpha, beta, priority_epsilon
        )

    def add(self, complete: Complete) -> Standing:
        """Store sequences with their priorities."""
        self._store.add(*complete)
        return self._standing()

    def draw(self, n: int) -> Batch:
        """Draw sequences by their priorities, with replacement.

        :raises ValueError: when nothing is stored
        """
        keys, weights = self._store.draw(n, self._random.random(n))
        return Batch(self._store.take(keys), keys, weights, self._standing())

    def update_priorities(self, keys: Keys, priorities: npt.NDArray[Any]) -> None:
        """See :meth:`PrioritizedSequences.update_priorities`."""
        self._store.update_priorities(keys, priorities)

    def _standing(self) -> Standing:
        mass, least = self._store.priorities.mass()
        return Standing(len(self._store), mass, least, self._store.max_priority)
