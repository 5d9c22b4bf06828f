"""Prioritized replay of sequences (Kapturowski et al. 2019); without torch."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from rlexp.buffers.pieces import chunks, take_over
from rlexp.buffers.priorities import Priorities, Proportional, RankBased
from rlexp.buffers.sequence_builder import Array, Sequences, Window, arrays_of, empty_sequences, take

Keys = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SCHEMES = ("proportional", "rank")


class PrioritizedSequences:
    """A ring of sequences, drawn by their priorities.

    A sequence is called by its key, the running number under which it came in; a priority that arrives when the
    sequence has been overwritten changes nothing, so that learners may be late.

    :param capacity: number of sequences
    :param window: how episodes are cut
    :param observation_space: of one environment
    :param n_actions: number of actions
    :param state_size: numbers of a recurrent state
    :param scheme: ``"proportional"`` or ``"rank"``
    :param alpha: how much priorities matter, 0 being uniform
    :param beta: how much importance weights correct; the largest weight that any stored sequence could have is 1
    :param priority_epsilon: added to priorities
    """

    def __init__(
        self,
        capacity: int,
        window: Window,
        observation_space: spaces.Space[Any],
        n_actions: int,
        state_size: int,
        scheme: str = "proportional",
        alpha: float = 0.9,
        beta: float = 0.6,
        priority_epsilon: float = 1e-6,
    ) -> None:
        self.capacity = capacity
        self.window = window
        self.beta = beta
        self.priority_epsilon = priority_epsilon
        self.max_priority = 1.0
        self.added = 0
        self.stored = empty_sequences(capacity, window, observation_space, n_actions, state_size)
        self.priorities: Priorities = (
            Proportional(capacity, alpha)
            if scheme == "proportional"
            else RankBased(capacity, alpha, sort_every=capacity)
        )

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def add(self, sequences: Sequences, priorities: Array | None = None) -> None:
        """Store sequences over the oldest ones.

        :param sequences: at most as many as fit
        :param priorities: ``(n,)``; None: the largest so far, which is 1 to begin with
        """
        n = len(sequences)
        if n > self.capacity:
            raise ValueError(f"{n} sequences given, {self.capacity} fit")
        keys = self.added + np.arange(n)
        places = keys % self.capacity
        theirs = arrays_of(sequences)
        for name, array in arrays_of(self.stored).items():
            array[places] = theirs[name]
        self.added += n
        if priorities is None:
            self.priorities.put(places, np.full(n, self.max_priority))
        else:
            self.update_priorities(keys, priorities)
        self.priorities.note_added(n)

    def draw(self, n: int, uniforms: Floats | None = None) -> tuple[Keys, Floats]:
        """Draw stratified, with replacement.

        :param uniforms: ``(n,)`` in [0, 1), where in its share each draw falls; None: from numpy's own generator
        :return: keys and importance weights, ``(n,)`` each
        :raises ValueError: when nothing is stored
        """
        if n == 0:
            return np.zeros(0, np.int64), np.zeros(0)
        uniforms = np.random.random_sample(n) if uniforms is None else uniforms
        places, weights = self.priorities.draw(uniforms, self.beta, False)
        turn = (self.added - 1) // self.capacity * self.capacity
        keys = places + turn
        return np.where(keys < self.added, keys, keys - self.capacity), weights

    def take(self, keys: Keys) -> Sequences:
        """Return copies of sequences, ``(n, ...)``."""
        return take(self.stored, keys % self.capacity)

    def update_priorities(self, keys: Keys, priorities: Array) -> None:
        """Give sequences new priorities; those that are no longer stored are passed over.

        :param keys: ``(n,)``
        :param priorities: ``(n,)``, at least 0
        """
        here = keys >= self.added - self.capacity
        keys, given = keys[here], np.asarray(priorities, np.float64)[here] + self.priority_epsilon
        self.priorities.put(keys % self.capacity, given)
        self.max_priority = max(self.max_priority, float(given.max(initial=0.0)))

    def digest(self) -> str:
        """Return a checksum of what is stored."""
        found = hashlib.sha256()
        for array in arrays_of(self.stored).values():
            found.update(np.ascontiguousarray(array[: len(self)]).tobytes())
        return found.hexdigest()

    def checkpoint_state(self, content: bool = True) -> dict[str, Any]:
        """Return everything as views and JSON values; nothing large is copied.

        :param content: False: only what changes while learning, and a checksum of the rest
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
        """Take back a state.

        :raises ValueError: when the content, left out of the state, is not what it was
        """
        if "arrays" in state:
            for name, array in arrays_of(self.stored).items():
                take_over(array, state["arrays"][name])
        elif state["digest"] != self.digest():
            raise ValueError("demonstrations: not those with which this run began")
        self.added, self.max_priority = state["added"], state["max_priority"]
        self.priorities.load_state(state["priorities"])
