"""Items in roughly descending order of a key, and draws by a power law of the rank.

The array of a binary heap stands in for the sorted one (Schaul et al. 2016, appendix B.2.1); it is sorted for good
from time to time, so that it stays close to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlexp.buffers.jit import compiled

Indices = npt.NDArray[np.int64]
Keys = npt.NDArray[np.float64]

_SEGMENTS_PER_ITEM = 4  # the shares that the search starts from: about four items wide on average
_MAX_SEGMENTS = 1 << 16


class RankHeap:
    """A binary max-heap in an array, with the place of every item.

    :param capacity: items are numbered from 0 to ``capacity - 1``; none is inside to begin with
    :raises ValueError: when it is less than 1
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity: {capacity} given, must be at least 1")
        self.capacity = capacity
        self._keys = np.zeros(capacity)  # by place, not by item: comparisons stay within one array
        self._items = np.zeros(capacity, dtype=np.int32)
        self._places = np.full(capacity, -1, dtype=np.int32)
        self._size = np.zeros(1, dtype=np.int64)

    def __len__(self) -> int:
        return int(self._size[0])

    @property
    def order(self) -> npt.NDArray[np.int32]:
        """The items by place, ``(len(self),)``: the one with the largest key first, the others roughly in order."""
        return self._items[: len(self)].copy()

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What :func:`set_keys` takes first: keys and items by place, places by item, the size."""
        return self._keys, self._items, self._places, self._size

    def places(self, items: Indices) -> Indices:
        """Return where items stand, ``(n,)``, counted from 0; -1 for those not inside."""
        return self._places[items].astype(np.int64)

    def set(self, items: Indices, keys: Keys) -> None:
        """Put items in or give them new keys; of an item named twice the last key stays.

        :param items: ``(n,)``
        :param keys: ``(n,)``, finite
        :raises IndexError: when there is no such item
        :raises ValueError: when a key is not finite; nothing is changed then
        """
        items = np.ascontiguousarray(items, dtype=np.int64)
        keys = np.ascontiguousarray(keys, dtype=np.float64)
        if items.shape != keys.shape or items.ndim != 1:
            raise ValueError(f"shapes {items.shape} and {keys.shape} given, one key per item is needed")
        fault = set_keys(self._keys, self._items, self._places, self._size, items, keys)
        if fault == 1:
            raise IndexError(f"items must be at least 0 and less than {self.capacity}")
        if fault == 2:
            raise ValueError("keys must be finite")

    def fill(self, begin: int, end: int, key: float) -> None:
        """Put in or change the items from ``begin`` to ``end - 1``, all with the same key."""
        if not 0 <= begin <= end <= self.capacity:
            raise IndexError(f"[{begin}, {end}) is not inside [0, {self.capacity})")
        if not np.isfinite(key):
            raise ValueError("keys must be finite")
        _fill(self._keys, self._items, self._places, self._size, begin, end, float(key))

    def sort(self) -> None:
        """Sort the array, which leaves it a heap; equal keys keep their order."""
        n = len(self)
        order = np.argsort(-self._keys[:n], kind="stable")
        self._keys[:n] = self._keys[:n][order]
        self._items[:n] = self._items[:n][order]
        self._places[self._items[:n]] = np.arange(n, dtype=np.int32)

    def state(self) -> dict[str, Any]:
        """Return what :meth:`load_state` needs: the array as it stands, order included."""
        n = len(self)
        return {"keys": self._keys[:n], "items": self._items[:n]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back a state."""
        n = len(state["keys"])
        self._size[0] = n
        self._keys[:n] = state["keys"]
        self._items[:n] = state["items"]
        self._places.fill(-1)
        self._places[self._items[:n]] = np.arange(n, dtype=np.int32)


class PowerLaw:
    """Ranks ``1 ... n`` with probabilities proportional to ``rank ** -exponent``, for every n up to a capacity.

    The running sum over ranks does not depend on n, so it is made once. Its range is cut into segments of equal mass,
    whose first ranks are kept: a search begins in the right segment, a few ranks wide on average, at the right spot.

    :param capacity: largest n
    :param exponent: at least 0; 0 is uniform
    """

    def __init__(self, capacity: int, exponent: float) -> None:
        self.exponent = exponent
        self.running = np.cumsum(np.arange(1, capacity + 1, dtype=np.float64) ** -exponent)
        segments = max(1, min(capacity // _SEGMENTS_PER_ITEM, _MAX_SEGMENTS))
        edges = np.linspace(0.0, self.running[-1], segments + 1)
        self.first = np.searchsorted(self.running, edges, side="right").astype(np.int32)

    def draw(self, n: int, uniforms: Keys) -> Indices:
        """Draw stratified: one place from each of equal shares of the mass of the first n ranks.

        :param n: how many ranks there are
        :param uniforms: ``(k,)`` in [0, 1): where in its share each draw falls
        :return: places ``(k,)``, counted from 0, in ascending order
        """
        found: Indices = draw_ranks(self.running, self.first, n, uniforms)
        return found

    def draw_from(self, heap: RankHeap, uniforms: Keys) -> tuple[Indices, Keys]:
        """Draw stratified from the items of a heap, which must not be empty.

        :param uniforms: ``(k,)`` in [0, 1): where in its share each draw falls
        :return: items and their ranks, which begin at 1, ``(k,)`` each
        """
        found: tuple[Indices, Keys] = _draw_items(self.running, self.first, heap.arrays, uniforms)
        return found

    def probabilities(self, n: int) -> Keys:
        """Return the exact probability of every rank, ``(n,)``."""
        return np.asarray(np.diff(self.running[:n], prepend=0.0) / self.running[n - 1])


# ------------------------------------------------------------------------------------------------- kernels


@compiled
def _settle(keys: Any, items: Any, places: Any, size: int, place: int, item: int, key: float) -> None:
    """Move an item from a free place to where its key belongs, up or down."""
    start = place
    while place > 0:
        parent = (place - 1) >> 1
        if keys[parent] >= key:
            break
        keys[place] = keys[parent]
        items[place] = items[parent]
        places[items[place]] = place
        place = parent
    if place == start:
        while True:
            child = 2 * place + 1
            if child >= size:
                break
            if child + 1 < size and keys[child + 1] > keys[child]:
                child += 1
            if keys[child] <= key:
                break
            keys[place] = keys[child]
            items[place] = items[child]
            places[items[place]] = place
            place = child
    keys[place] = key
    items[place] = item
    places[item] = place


@compiled
def _put(keys: Any, items: Any, places: Any, size: Any, item: int, key: float) -> None:
    place = places[item]
    if place < 0:
        place = size[0]
        size[0] += 1
    _settle(keys, items, places, size[0], place, item, key)


@compiled
def set_keys(keys: Any, items: Any, places: Any, size: Any, chosen: Any, values: Any) -> int:
    """:meth:`RankHeap.set` for kernels; 1: no such item, 2: no such key, 0: done."""
    for k in range(chosen.size):
        if chosen[k] < 0 or chosen[k] >= places.size:
            return 1
        if not np.isfinite(values[k]):
            return 2
    for k in range(chosen.size):
        _put(keys, items, places, size, chosen[k], values[k])
    return 0


@compiled
def _fill(keys: Any, items: Any, places: Any, size: Any, begin: int, end: int, value: float) -> None:
    for item in range(begin, end):
        _put(keys, items, places, size, item, value)


@compiled
def draw_ranks(running: Any, first: Any, n: int, uniforms: Any) -> Any:
    """:meth:`PowerLaw.draw` for kernels."""
    k = uniforms.size
    share = running[n - 1] / k
    per_mass = (first.size - 1) / running[-1]
    found = np.empty(k, dtype=np.int64)
    for i in range(k):
        mass = (i + uniforms[i]) * share
        segment = min(int(mass * per_mass), first.size - 2)
        low = min(first[segment], n - 1)
        high = min(first[segment + 1], n - 1)
        # Inside a segment the running sum is all but a straight line; a bisection would mispredict every branch.
        before = running[low - 1] if low > 0 else 0.0
        span = running[high] - before  # 0 where an exponent is so large that the last ranks weigh nothing
        along = (mass - before) / span if span > 0.0 else 0.0
        place = max(0, min(low + int(along * (high - low + 1)), n - 1))
        while place > 0 and running[place - 1] > mass:
            place -= 1
        while place < n - 1 and running[place] <= mass:
            place += 1
        found[i] = place
    return found


@compiled
def _draw_items(running: Any, first: Any, heap: Any, uniforms: Any) -> Any:
    places = draw_ranks(running, first, heap[3][0], uniforms)
    ranks = np.empty(places.size)
    for k in range(places.size):
        ranks[k] = places[k] + 1.0
        places[k] = heap[1][places[k]]
    return places, ranks
