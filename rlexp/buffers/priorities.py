"""Proportional and rank-based priorities (Schaul et al. 2016, section 3.3); without torch.

Both have the same methods: ``put`` sets the priorities of items, ``fill`` that of a range, ``draw`` samples items with
their importance weights, and ``probabilities`` returns the exact distribution that ``draw`` samples from.
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
    """Items 0 ... capacity - 1, of which those with a priority can be sampled."""

    def put(self, items: Indices, priorities: Floats) -> None:
        """Set priorities; of a repeated item the last one counts.

        :param items: ``(n,)``
        :param priorities: ``(n,)``
        """

    def fill(self, begin: int, end: int, priority: float) -> None:
        """Set the priority of the items from ``begin`` to ``end - 1``.

        :param begin: first item
        :param end: one past the last item
        :param priority: of all of them
        """

    def draw(self, uniforms: Floats, beta: float, by_batch: bool) -> tuple[Indices, Floats]:
        """Sample one item from each of n strata of equal mass.

        :param uniforms: ``(n,)`` in [0, 1): position within each stratum
        :param beta: exponent of the importance weights ``(N P(i))^-β / max w``
        :param by_batch: divide by the maximum of the batch rather than of all items
        :return: items and weights, ``(n,)`` each
        :raises ValueError: when no item has a priority
        """

    def probabilities(self) -> Floats:
        """Return the exact probability of every item, ``(capacity,)``; 0 for those without a priority."""

    def mass(self) -> tuple[float, float]:
        """Return the sum of the masses and the smallest one, to weigh several structures against each other."""

    def note_added(self, n: int) -> None:
        """Count n added items, after which a structure may be reorganised.

        :param n: since the last call
        """

    def state(self) -> dict[str, Any]:
        """Return what :meth:`load_state` needs, as arrays and JSON values."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""


class Proportional:
    """``P(i) = p_i^α / Σ p_k^α``, Schaul et al. 2016, eq. 1.

    :param capacity: number of items
    :param alpha: 0 for uniform, 1 for proportional sampling; larger is greedier
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
        """Nothing to do: the tree is always exact."""

    def state(self) -> dict[str, Any]:
        """See :class:`Priorities`."""
        return self._tree.state()

    def load_state(self, state: dict[str, Any]) -> None:
        """See :class:`Priorities`."""
        self._tree.load_state(state)


class RankBased:
    """``P(i) = rank(i)^-α / Σ k^-α``, with the position in a heap as the rank.

    :param capacity: number of items
    :param alpha: 0 for uniform sampling; larger is greedier
    :param sort_every: sort after this many additions; 10^6 in the paper, at a capacity of 10^6
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
            raise ValueError("cannot sample: no item has a priority")
        items, ranks = self._law.draw_from(self._heap, uniforms)
        return items, _weights(ranks / n, self.alpha * beta, by_batch)

    def probabilities(self) -> Floats:
        """See :class:`Priorities`."""
        found = np.zeros(self._heap.capacity)
        found[self._heap.order] = self._law.probabilities(len(self._heap))
        return found

    def mass(self) -> tuple[float, float]:
        """Return 1 per item: ranks of different structures cannot be compared."""
        return float(len(self._heap)), 1.0

    def note_added(self, n: int) -> None:
        """Sort the heap every ``sort_every`` additions."""
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
