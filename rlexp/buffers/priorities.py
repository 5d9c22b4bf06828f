"""The two ways to turn a TD error into a probability (Schaul et al. 2016, section 3.3); pure, without torch.

Both answer the same words: ``put`` gives items a priority, ``fill`` gives a range one, ``draw`` draws items with their
importance weights, ``probabilities`` says exactly what ``draw`` draws from.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rlexp.buffers.rank_heap import PowerLaw, RankHeap
from rlexp.buffers.sum_tree import SumMinTree

Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Priorities(Protocol):
    """Items 0 ... capacity - 1, of which only those that were given a priority can be drawn."""

    def put(self, items: Indices, priorities: Floats) -> None:
        """Give items priorities, ``(n,)`` each; of an item named twice the last one stays."""

    def fill(self, begin: int, end: int, priority: float) -> None:
        """Give the items from ``begin`` to ``end - 1`` the same priority."""

    def draw(self, uniforms: Floats, beta: float, by_batch: bool) -> tuple[Indices, Floats]:
        """Draw stratified, one item from each of n equal shares of the mass.

        :param uniforms: ``(n,)`` in [0, 1): where in its share each draw falls
        :param beta: exponent of the importance weights ``(N P(i))^-β / max w``
        :param by_batch: take the maximum over the batch rather than over all items
        :return: items and weights, ``(n,)`` each
        :raises ValueError: when no item has a priority
        """

    def probabilities(self) -> Floats:
        """Return the exact probability of every item, ``(capacity,)``; 0 for those without a priority."""

    def mass(self) -> tuple[float, float]:
        """Return how much all items weigh together, and the least likely one; to compare with other such structures."""

    def note_added(self, n: int) -> None:
        """Be told that n items were added, which is what upkeep is measured in."""

    def state(self) -> dict[str, Any]:
        """Return what :meth:`load_state` needs, as arrays and JSON values."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back a state."""


class Proportional:
    """``P(i) = p_i^α / Σ p_k^α``, Schaul et al. 2016, eq. 1.

    :param capacity: number of items
    :param alpha: 0 is uniform, 1 proportional; the larger, the greedier
    """

    def __init__(self, capacity: int, alpha: float) -> None:
        self.alpha = alpha
        self._tree = SumMinTree(capacity)

    def put(self, items: Indices, priorities: Floats) -> None:
        """See :class:`Priorities`."""
        self._tree.set(items, priorities**self.alpha)

    def fill(self, begin: int, end: int, priority: float) -> None:
        """See :class:`Priorities`."""
        self._tree.fill(begin, end, priority**self.alpha)

    def draw(self, uniforms: Floats, beta: float, by_batch: bool) -> tuple[Indices, Floats]:
        """See :class:`Priorities`."""
        items, masses = self._tree.draw(uniforms)
        # The largest weight belongs to the smallest probability; N and the sum cancel out of the ratio.
        return items, _weights(masses / self._tree.minimum, -beta, by_batch)

    def probabilities(self) -> Floats:
        """See :class:`Priorities`."""
        return np.asarray(self._tree.masses / self._tree.total)

    def mass(self) -> tuple[float, float]:
        """See :class:`Priorities`."""
        return self._tree.total, self._tree.minimum

    def note_added(self, n: int) -> None:
        """Nothing to keep up: the tree is always exact."""

    def state(self) -> dict[str, Any]:
        """See :class:`Priorities`."""
        return self._tree.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """See :class:`Priorities`."""
        self._tree.load_state(state)


class RankBased:
    """``P(i) = rank(i)^-α / Σ k^-α``, with the place in a heap for the rank.

    :param capacity: number of items
    :param alpha: 0 is uniform; the larger, the greedier
    :param sort_every: sort after so many additions; 10^6 in the paper, at a capacity of 10^6
    """

    def __init__(self, capacity: int, alpha: float, sort_every: int) -> None:
        self.alpha = alpha
        self.sort_every = sort_every
        self._heap = RankHeap(capacity)
        self._law = PowerLaw(capacity, alpha)
        self._until_sort = sort_every

    def put(self, items: Indices, priorities: Floats) -> None:
        """See :class:`Priorities`."""
        self._heap.set(items, priorities)

    def fill(self, begin: int, end: int, priority: float) -> None:
        """See :class:`Priorities`."""
        self._heap.fill(begin, end, priority)

    def draw(self, uniforms: Floats, beta: float, by_batch: bool) -> tuple[Indices, Floats]:
        """See :class:`Priorities`."""
        n = len(self._heap)
        if n == 0:
            raise ValueError("nothing can be drawn: no item has a priority")
        items, ranks = self._law.draw_from(self._heap, uniforms)
        return items, _weights(ranks / n, self.alpha * beta, by_batch)

    def probabilities(self) -> Floats:
        """See :class:`Priorities`."""
        found = np.zeros(self._heap.capacity)
        found[self._heap.order] = self._law.probabilities(len(self._heap))
        return found

    def mass(self) -> tuple[float, float]:
        """Every item weighs the same: ranks say nothing beside those of another structure."""
        return float(len(self._heap)), 1.0

    def note_added(self, n: int) -> None:
        """Sort when it is time."""
        self._until_sort -= n
        if self._until_sort <= 0:
            self._heap.sort()
            self._until_sort = self.sort_every

    def state(self) -> dict[str, Any]:
        """See :class:`Priorities`."""
        return {**self._heap.state(), "until_sort": self._until_sort}

    def load_state(self, state: dict[str, Any]) -> None:
        """See :class:`Priorities`."""
        self._heap.load_state(state)
        self._until_sort = state["until_sort"]


def _weights(ratios: Floats, exponent: float, by_batch: bool) -> Floats:
    weights = ratios**exponent
    return weights / weights.max() if by_batch else weights
