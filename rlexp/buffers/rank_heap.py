"""Items in approximately descending order of a key, sampled by a power law of the rank.

The array of a binary heap approximates the sorted one (Schaul et al. 2016, appendix B.2.1); it is sorted from time to
time, so that it stays close.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlexp.buffers import item_checks
from rlexp.buffers.jit import compiled

Indices = npt.NDArray[np.int64]
Keys = npt.NDArray[np.float64]

_SEGMENTS_PER_ITEM = 4  # strata that the search starts from, about four items wide on average
_MAX_SEGMENTS = 1 << 16


class RankHeap:
    """A binary max-heap in an array, with the position of every item.

    :param capacity: items are numbered from 0 to ``capacity - 1``; it is empty at first
    :raises ValueError: when it is less than 1
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity: {capacity} given, must be at least 1")
        self.capacity = capacity
        self._keys = np.zeros(capacity)  # by position, not by item: comparisons stay within one array
        self._items = np.zeros(capacity, dtype=np.int32)
        self._positions = np.full(capacity, -1, dtype=np.int32)
        self._size = np.zeros(1, dtype=np.int64)

    def __len__(self) -> int:
        return int(self._size[0])

    @property
    def order(self) -> npt.NDArray[np.int32]:
        """The items by position, ``(len(self),)``: the largest key first, the others approximately in order."""
        return self._items[: len(self)].copy()

    @property
    def arrays(self) -> tuple[Any, ...]:
        """First arguments of :func:`set_keys`: keys and items by position, positions by item, the size."""
        return self._keys, self._items, self._positions, self._size

    def positions(self, items: Indices) -> Indices:
        """Return the positions of items, ``(n,)``, counted from 0; -1 for those not in the heap."""
        return self._positions[items].astype(np.int64)

    def set(self, items: Indices, keys: Keys) -> None:
        """Add items or change their keys; of a repeated item the last key counts.

        :param items: ``(n,)``
        :param keys: ``(n,)``, finite
        :raises IndexError: when there is no such item
        :raises ValueError: when a key is not finite; nothing is changed then
        """
        items, keys = item_checks.pairs(items, keys, "key")
        fault = set_keys(self._keys, self._items, self._positions, self._size, items, keys)
        item_checks.raise_fault(fault, self.capacity, "keys must be finite")

    def fill(self, begin: int, end: int, key: float) -> None:
        """Add or change the items from ``begin`` to ``end - 1``, all with the same key.

        :param begin: first item
        :param end: one past the last item
        :param key: of all of them
        :raises IndexError: when the range is not inside the capacity
        :raises ValueError: when the key is not finite
        """
        item_checks.check_range(begin, end, self.capacity)
        if not np.isfinite(key):
            raise ValueError("keys must be finite")
        _fill(self._keys, self._items, self._positions, self._size, begin, end, float(key))

    def sort(self) -> None:
        """Sort the array, which remains a heap; equal keys keep their order."""
        n = len(self)
        order = np.argsort(-self._keys[:n], kind="stable")
        self._keys[:n] = self._keys[:n][order]
        self._items[:n] = self._items[:n][order]
        self._positions[self._items[:n]] = np.arange(n, dtype=np.int32)

    def state(self) -> dict[str, Any]:
        """Return what :meth:`load_state` needs: the array, order included."""
        n = len(self)
        return {"keys": self._keys[:n], "items": self._items[:n]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        n = len(state["keys"])
        self._size[0] = n
        self._keys[:n] = state["keys"]
        self._items[:n] = state["items"]
        self._positions.fill(-1)
        self._positions[self._items[:n]] = np.arange(n, dtype=np.int32)


class PowerLaw:
    """Ranks ``1 ... n`` with probabilities proportional to ``rank ** -exponent``, for every n up to a capacity.

    The running sum over ranks does not depend on n, so that it is computed once. Its range is cut into segments of
    equal mass, whose first ranks are stored: a search begins in the right segment, a few ranks wide on average.

    :param capacity: largest n
    :param exponent: at least 0; 0 for uniform sampling
    """

    def __init__(self, capacity: int, exponent: float) -> None:
        self.exponent = exponent
        self.running = np.cumsum(np.arange(1, capacity + 1, dtype=np.float64) ** -exponent)
        segments = max(1, min(capacity // _SEGMENTS_PER_ITEM, _MAX_SEGMENTS))
        edges = np.linspace(0.0, self.running[-1], segments + 1)
        self.first = np.searchsorted(self.running, edges, side="right").astype(np.int32)

    def draw(self, n: int, uniforms: Keys) -> Indices:
        """Sample one position from each of k strata of equal mass of the first n ranks.

        :param n: number of ranks
        :param uniforms: ``(k,)`` in [0, 1): position within each stratum
        :return: positions ``(k,)``, counted from 0, in ascending order
        """
        found: Indices = draw_ranks(self.running, self.first, n, uniforms)
        return found

    def draw_from(self, heap: RankHeap, uniforms: Keys) -> tuple[Indices, Keys]:
        """Sample from the items of a heap, stratified.

        :param heap: not empty
        :param uniforms: ``(k,)`` in [0, 1): position within each stratum
        :return: items and their ranks, which begin at 1, ``(k,)`` each
        """
        found: tuple[Indices, Keys] = _draw_items(self.running, self.first, heap.arrays, uniforms)
        return found

    def probabilities(self, n: int) -> Keys:
        """Return the exact probability of every rank, ``(n,)``."""
        return np.asarray(np.diff(self.running[:n], prepend=0.0) / self.running[n - 1])


# ------------------------------------------------------------------------------------------------- kernels


@compiled
def _settle(keys: Any, items: Any, positions: Any, size: int, position: int, item: int, key: float) -> None:
    """Move an item from a free position to where its key belongs, up or down."""
    start = position
    while position > 0:
        parent = (position - 1) >> 1
        if keys[parent] >= key:
            break
        keys[position] = keys[parent]
        items[position] = items[parent]
        positions[items[position]] = position
        position = parent
    if position == start:
        while True:
            child = 2 * position + 1
            if child >= size:
                break
            if child + 1 < size and keys[child + 1] > keys[child]:
                child += 1
            if keys[child] <= key:
                break
            keys[position] = keys[child]
            items[position] = items[child]
            positions[items[position]] = position
            position = child
    keys[position] = key
    items[position] = item
    positions[item] = position


@compiled
def _put(keys: Any, items: Any, positions: Any, size: Any, item: int, key: float) -> None:
    position = positions[item]
    if position < 0:
        position = size[0]
        size[0] += 1
    _settle(keys, items, positions, size[0], position, item, key)


@compiled
def set_keys(keys: Any, items: Any, positions: Any, size: Any, chosen: Any, values: Any) -> int:
    """:meth:`RankHeap.set` for kernels.

    :param keys: the heap's arrays, as ``items``, ``positions`` and ``size``; see :attr:`RankHeap.arrays`
    :param chosen: items, ``(n,)``
    :param values: their keys, ``(n,)``
    :return: 0: done, 1: an item is out of range, 2: a key is not finite
    """
    for k in range(chosen.size):
        if chosen[k] < 0 or chosen[k] >= positions.size:
            return 1
        if not np.isfinite(values[k]):
            return 2
    for k in range(chosen.size):
        _put(keys, items, positions, size, chosen[k], values[k])
    return 0


@compiled
def _fill(keys: Any, items: Any, positions: Any, size: Any, begin: int, end: int, value: float) -> None:
    for item in range(begin, end):
        _put(keys, items, positions, size, item, value)


@compiled
def draw_ranks(running: Any, first: Any, n: int, uniforms: Any) -> Any:
    """:meth:`PowerLaw.draw` for kernels.

    :param running: running sum of the law
    :param first: first rank of each segment
    :param n: number of ranks
    :param uniforms: ``(k,)`` in [0, 1)
    :return: positions, ``(k,)``
    """
    k = uniforms.size
    share = running[n - 1] / k
    per_mass = (first.size - 1) / running[-1]
    found = np.empty(k, dtype=np.int64)
    for i in range(k):
        mass = (i + uniforms[i]) * share
        segment = min(int(mass * per_mass), first.size - 2)
        low = min(first[segment], n - 1)
        high = min(first[segment + 1], n - 1)
        # Within a segment the running sum is almost linear; a bisection would mispredict every branch.
        before = running[low - 1] if low > 0 else 0.0
        span = running[high] - before  # 0 where an exponent is so large that the last ranks weigh nothing
        fraction = (mass - before) / span if span > 0.0 else 0.0
        position = max(0, min(low + int(fraction * (high - low + 1)), n - 1))
        while position > 0 and running[position - 1] > mass:
            position -= 1
        while position < n - 1 and running[position] <= mass:
            position += 1
        found[i] = position
    return found


@compiled
def _draw_items(running: Any, first: Any, heap: Any, uniforms: Any) -> Any:
    positions = draw_ranks(running, first, heap[3][0], uniforms)
    ranks = np.empty(positions.size)
    for k in range(positions.size):
        ranks[k] = positions[k] + 1.0
        positions[k] = heap[1][positions[k]]
    return positions, ranks
