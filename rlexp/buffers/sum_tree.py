"""Sum and minimum of an array of masses, and the search of a running sum, in logarithmic time.

A tree of fan-out 8 in one flat array: a node's children are one cache line, and a million leaves are seven levels deep.
Parents are always recomputed from their children, never adjusted by a difference, so that no error accumulates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlexp.buffers import item_checks
from rlexp.buffers.jit import compiled

Indices = npt.NDArray[np.int64]
Masses = npt.NDArray[np.float64]

_SHIFT = 3
_FAN = 1 << _SHIFT
_CACHE_LINE = 64


class SumMinTree:
    """Masses of ``capacity`` items, all zero at first.

    :param capacity: number of items, at least 1
    :raises ValueError: when it is less than 1
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity: {capacity} given, must be at least 1")
        self.capacity = capacity
        starts, counts, length, nodes = [], [], 0, capacity
        while True:
            starts.append(length)
            counts.append(nodes)
            if nodes == 1:
                break
            length += -(-nodes // _FAN) * _FAN  # a level is padded with zeros to whole families
            nodes = -(-nodes // _FAN)
        self._starts = np.array(starts, dtype=np.int64)
        self._counts = np.array(counts, dtype=np.int64)
        self._sums = _aligned(length + 1)
        self._minima = _aligned(length + 1)
        self._minima.fill(np.inf)

    @property
    def total(self) -> float:
        """Sum of all masses."""
        return float(self._sums[-1])

    @property
    def minimum(self) -> float:
        """Smallest positive mass; infinite when there is none."""
        return float(self._minima[-1])

    @property
    def masses(self) -> Masses:
        """A read-only view of all masses, ``(capacity,)``."""
        view = self._sums[: self.capacity]
        view.flags.writeable = False
        return view

    def set(self, items: Indices, masses: Masses) -> None:
        """Set masses; of a repeated item the last mass counts.

        :param items: ``(n,)``
        :param masses: ``(n,)``, finite and not negative
        :raises IndexError: when there is no such item
        :raises ValueError: when a mass is negative or not finite; nothing is changed then
        """
        items, masses = item_checks.pairs(items, masses, "mass")
        fault = set_masses(self._sums, self._minima, self._starts, self._counts, items, masses)
        item_checks.raise_fault(fault, self.capacity, "masses must be finite and not negative")

    def fill(self, begin: int, end: int, mass: float) -> None:
        """Set the mass of the items from ``begin`` to ``end - 1``.

        :param begin: first item
        :param end: one past the last item
        :param mass: of all of them

        :raises IndexError: when the range is not inside the tree
        :raises ValueError: when the mass is negative or not finite
        """
        item_checks.check_range(begin, end, self.capacity)
        if not 0 <= mass < np.inf:
            raise ValueError(f"mass: {mass} given, must be finite and not negative")
        if begin < end:
            _fill(self._sums, self._minima, self._starts, self._counts, begin, end, float(mass))

    def find(self, masses: Masses) -> Indices:
        """Return the items at which the running sum of masses exceeds the given ones.

        Items without mass are never returned; values at or beyond the total lead to the last item with mass.

        :param masses: ``(n,)``, at least 0
        :return: ``(n,)``
        :raises ValueError: when all masses are zero
        """
        self._check_any()
        rest = np.array(masses, dtype=np.float64)
        found: Indices = _find(self._sums, self._starts, rest)
        return found

    def draw(self, uniforms: Masses) -> tuple[Indices, Masses]:
        """Sample one item from each of n strata of equal mass.

        :param uniforms: ``(n,)`` in [0, 1): position within each stratum
        :return: items ``(n,)`` in ascending order and their masses ``(n,)``
        :raises ValueError: when all masses are zero
        """
        self._check_any()
        found: tuple[Indices, Masses] = draw_masses(self._sums, self._starts, uniforms)
        return found

    @property
    def arrays(self) -> tuple[Any, ...]:
        """First arguments of :func:`set_masses`: sums, minima, starts and counts of the levels."""
        return self._sums, self._minima, self._starts, self._counts

    def _check_any(self) -> None:
        if not self._sums[-1] > 0:
            raise ValueError("cannot sample: every mass is zero")

    def state(self) -> dict[str, Any]:
        """Return what :meth:`load_state` needs: the masses up to the last positive one."""
        used = np.flatnonzero(self._sums[: self.capacity])
        return {"masses": self._sums[: used[-1] + 1 if len(used) else 0]}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned; recomputing the sums gives identical numbers."""
        masses = state["masses"]
        self.fill(0, self.capacity, 0.0)
        if len(masses):
            self.set(np.arange(len(masses)), masses)


def _aligned(length: int) -> Masses:
    """Zeros, ``(length,)``, that begin at a cache line, so that a family of nodes never straddles two."""
    raw = np.zeros(length + _CACHE_LINE // 8)
    offset = (-raw.ctypes.data % _CACHE_LINE) // 8
    return raw[offset : offset + length]


# ------------------------------------------------------------------------------------------------- kernels


@compiled
def _recompute(sums: Any, minima: Any, children: int, parent: int) -> None:
    total = 0.0
    least = np.inf
    for child in range(children, children + _FAN):
        total += sums[child]
        least = min(least, minima[child])
    sums[parent] = total
    minima[parent] = least


@compiled
def set_masses(sums: Any, minima: Any, starts: Any, counts: Any, items: Any, masses: Any) -> int:
    """:meth:`SumMinTree.set` for kernels.

    :param sums: the tree's arrays, as ``minima``, ``starts`` and ``counts``; see :attr:`SumMinTree.arrays`
    :param items: ``(n,)``
    :param masses: ``(n,)``
    :return: 0: done, 1: an item is out of range, 2: a mass is negative or not finite
    """
    n = items.size
    for k in range(n):
        if items[k] < 0 or items[k] >= counts[0]:
            return 1
        if not 0.0 <= masses[k] < np.inf:
            return 2
    for k in range(n):
        sums[items[k]] = masses[k]
        minima[items[k]] = masses[k] if masses[k] > 0.0 else np.inf
    for level in range(1, starts.size):
        below, here, count = starts[level - 1], starts[level], counts[level]
        if n >= count:  # recomputing the whole level is cheaper
            for node in range(count):
                _recompute(sums, minima, below + (node << _SHIFT), here + node)
            continue
        done = -1
        for k in range(n):
            node = items[k] >> (_SHIFT * level)
            if node != done:  # stratified samples are in order: neighbours often share a parent
                _recompute(sums, minima, below + (node << _SHIFT), here + node)
                done = node
    return 0


@compiled
def _fill(sums: Any, minima: Any, starts: Any, counts: Any, begin: int, end: int, mass: float) -> None:
    least = mass if mass > 0.0 else np.inf
    for item in range(begin, end):
        sums[item] = mass
        minima[item] = least
    first, last = begin, end - 1
    for level in range(1, starts.size):
        first >>= _SHIFT
        last >>= _SHIFT
        for node in range(first, last + 1):
            _recompute(sums, minima, starts[level - 1] + (node << _SHIFT), starts[level] + node)


@compiled
def _find(sums: Any, starts: Any, rest: Any) -> Any:
    """Descend level by level with all searches side by side: their cache misses overlap."""
    n = rest.size
    found = np.zeros(n, dtype=np.int64)
    for level in range(starts.size - 2, -1, -1):
        for k in range(n):
            family = found[k] << _SHIFT
            first = starts[level] + family
            left = rest[k]
            chosen = -1
            inside = False
            for child in range(_FAN):
                mass = sums[first + child]
                if mass > 0.0:
                    chosen = child
                    if left < mass:
                        inside = True
                        break
                    left -= mass
            # Rounding may leave a search just beyond the last child: it then stays at the end.
            rest[k] = left if inside else np.inf
            found[k] = family + chosen
    return found


@compiled
def draw_masses(sums: Any, starts: Any, uniforms: Any) -> Any:
    """:meth:`SumMinTree.draw` for kernels.

    :param sums: the tree's array
    :param starts: of its levels
    :param uniforms: ``(n,)`` in [0, 1)
    :return: items and their masses, ``(n,)`` each
    """
    n = uniforms.size
    share = sums[starts[-1]] / n
    rest = np.empty(n)
    for k in range(n):
        rest[k] = (k + uniforms[k]) * share
    found = _find(sums, starts, rest)
    masses = np.empty(n)
    for k in range(n):
        masses[k] = sums[found[k]]
    return found, masses
