"""Prioritized replay of sequences (Kapturowski et al. 2019); without torch."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from rlexp.buffers.chunked_io import chunks, restore_chunks
from rlexp.buffers.priorities import Priorities, Proportional, RankBased
from rlexp.buffers.sequence_builder import Array, SequenceLayout, Sequences, arrays_of, empty_sequences, take

Keys = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SCHEMES = ("proportional", "rank")


class PrioritizedSequences:
    """A ring of sequences, sampled by priority.

    The key of a sequence is its running number; a priority that arrives after its sequence was overwritten is
    ignored, so that it may be late.

    :param capacity: number of sequences
    :param layout: how episodes are cut
    :param observation_space: of one environment
    :param n_actions: number of actions
    :param state_size: size of a recurrent state; 0: none
    :param scheme: ``"proportional"`` or ``"rank"``
    :param alpha: exponent of the priorities, 0 for uniform sampling
    :param beta: exponent of the importance weights; the largest one of all stored sequences is 1
    :param priority_epsilon: added to every priority
    """

    def __init__(
        self,
        capacity: int,
        layout: SequenceLayout,
        observation_space: spaces.Space[Any],
        n_actions: int,
        state_size: int,
        scheme: str = "proportional",
        alpha: float = 0.9,
        beta: float = 0.6,
        priority_epsilon: float = 1e-6,
    ) -> None:
        self.capacity = capacity
        self.layout = layout
        self.beta = beta
        self.priority_epsilon = priority_epsilon
        self.max_priority = 1.0
        self.added = 0
        self.stored = empty_sequences(capacity, layout, observation_space, n_actions, state_size)
        self.priorities: Priorities = (
            Proportional(capacity, alpha)
            if scheme == "proportional"
            else RankBased(capacity, alpha, sort_every=capacity)
        )

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, sequences: Sequences, priorities: Array | None = None) -> None:
        """Store sequences, overwriting the oldest ones.

        :param sequences: n of them, at most the capacity
        :param priorities: ``(n,)``; None: the largest so far, initially 1
        :raises ValueError: when they are more than the capacity
        """
        n = len(sequences)
        if n > self.capacity:
            raise ValueError(f"{n} sequences given, {self.capacity} fit")
        keys = self.added + np.arange(n)
        indices = keys % self.capacity
        new = arrays_of(sequences)
        for name, array in arrays_of(self.stored).items():
            array[indices] = new[name]
        self.added += n
        if priorities is None:
            self.priorities.put(indices, np.full(n, self.max_priority))
        else:
            self.update_priorities(keys, priorities)
        self.priorities.note_added(n)

    def draw(self, n: int, uniforms: Floats | None = None) -> tuple[Keys, Floats]:
        """Sample with replacement, stratified.

        :param n: how many
        :param uniforms: ``(n,)`` in [0, 1), position within each stratum; None: from numpy's global generator
        :return: keys and importance weights, ``(n,)`` each
        :raises ValueError: when the buffer is empty
        """
        if n == 0:
            return np.zeros(0, np.int64), np.zeros(0)
        uniforms = np.random.random_sample(n) if uniforms is None else uniforms
        indices, weights = self.priorities.draw(uniforms, self.beta, False)
        turn = (self.added - 1) // self.capacity * self.capacity
        keys = indices + turn
        return np.where(keys < self.added, keys, keys - self.capacity), weights

    def take(self, keys: Keys) -> Sequences:
        """Return copies of sequences.

        :param keys: ``(n,)``, none of them overwritten
        """
        return take(self.stored, keys % self.capacity)

    def update_priorities(self, keys: Keys, priorities: Array) -> None:
        """Set priorities; sequences that are no longer stored are skipped.

        :param keys: ``(n,)``
        :param priorities: ``(n,)``, at least 0
        """
        stored = keys >= self.added - self.capacity
        keys, given = keys[stored], np.asarray(priorities, np.float64)[stored] + self.priority_epsilon
        self.priorities.put(keys % self.capacity, given)
        self.max_priority = max(self.max_priority, float(given.max(initial=0.0)))

    def digest(self) -> str:
        """Return a checksum of the stored sequences."""
        found = hashlib.sha256()
        for array in arrays_of(self.stored).values():
            found.update(np.ascontiguousarray(array[: len(self)]).tobytes())
        return found.hexdigest()

    def checkpoint_state(self, content: bool = True) -> dict[str, Any]:
        """Return the state as views and JSON values; nothing large is copied.

        :param content: False: only what changes during training, with a checksum of the sequences
        """
        state: dict[str, Any] = {
            "added": self.added,
            "max_priority": self.max_priority,
            "priorities": self.priorities.state(),
        }
        if content:
            kept = {name: list(chunks(array[: len(self)])) for name, array in arrays_of(self.stored).items()}
            return {**state, "arrays": kept}
        return {**state, "digest": self.digest()}

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`checkpoint_state` returned.

        :raises ValueError: when the sequences, left out of the state, have changed
        """
        if "arrays" in state:
            for name, array in arrays_of(self.stored).items():
                restore_chunks(array, state["arrays"][name])
        elif state["digest"] != self.digest():
            raise ValueError("demonstrations: not those with which this run began")
        self.added, self.max_priority = state["added"], state["max_priority"]
        self.priorities.load_state(state["priorities"])
