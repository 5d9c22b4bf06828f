"""Prioritized replay of sequences, and its mixture with demonstrations (Kapturowski et al. 2019; Paine et al. 2019)."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces

from rlexp.buffers.pieces import chunks, take_over
from rlexp.buffers.priorities import Priorities, Proportional, RankBased
from rlexp.buffers.sequence_builder import Array, Sequences, Window, arrays_of, empty_sequences, join, take

Keys = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SCHEMES = ("proportional", "rank")


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

    def draw(self, n: int) -> tuple[Keys, Floats]:
        """Draw stratified, with replacement.

        :return: keys and importance weights, ``(n,)`` each
        :raises ValueError: when nothing is stored
        """
        if n == 0:
            return np.zeros(0, np.int64), np.zeros(0)
        places, weights = self.priorities.draw(np.random.random_sample(n), self.beta, False)
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
