"""The pure data structures: sums, minima, searches, heap order, power law."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlexp.buffers.rank_heap import PowerLaw, RankHeap
from rlexp.buffers.sum_tree import SumMinTree

CAPACITIES = [1, 2, 3, 7, 8, 9, 64, 65, 100, 513]


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_sums_and_minima_follow_every_change(capacity: int) -> None:
    rng = np.random.default_rng(capacity)
    tree, plain = SumMinTree(capacity), np.zeros(capacity)
    for _ in range(30):
        items = rng.integers(0, capacity, size=rng.integers(1, 2 * capacity + 1))
        masses = rng.random(len(items)) * (rng.random(len(items)) < 0.8)
        tree.set(items, masses)
        for item, mass in zip(items, masses, strict=True):
            plain[item] = mass
        assert np.array_equal(tree.masses, plain)
        assert tree.total == pytest.approx(plain.sum(), rel=1e-12)
        assert tree.minimum == (plain[plain > 0].min() if plain.any() else np.inf)


@pytest.mark.parametrize("capacity", CAPACITIES)
def test_a_search_finds_what_the_running_sum_says(capacity: int) -> None:
    masses = np.random.default_rng(capacity).integers(0, 4, size=capacity).astype(float)
    masses[capacity // 2] = 3
    tree = SumMinTree(capacity)
    tree.set(np.arange(capacity), masses)
    wanted = np.arange(0, masses.sum(), 0.5)
    assert np.array_equal(tree.find(wanted), np.searchsorted(np.cumsum(masses), wanted, side="right"))


def test_a_search_at_or_beyond_the_total_ends_at_the_last_item_with_mass() -> None:
    tree = SumMinTree(20)
    tree.set(np.array([3, 11]), np.array([0.1, 0.2]))
    assert tree.find(np.array([0.0, tree.total, 1e9])).tolist() == [3, 11, 11]


def test_nothing_drifts() -> None:
    rng = np.random.default_rng(0)
    tree = SumMinTree(50)
    for _ in range(2000):
        tree.set(rng.integers(0, 50, 8), 10.0 ** rng.uniform(-12, 12, 8))
    tree.set(np.arange(50), np.full(50, 1e-9))
    assert tree.total == pytest.approx(50e-9, rel=1e-14), (
        "differences would have left rounding errors of 1e-4"
    )


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 200), st.data())
def test_filling_a_range_is_setting_each(capacity: int, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, capacity))
    end = data.draw(st.integers(begin, capacity))
    one, other = SumMinTree(capacity), SumMinTree(capacity)
    for tree in (one, other):
        tree.set(np.arange(capacity), np.arange(capacity, dtype=float))
    one.fill(begin, end, 0.25)
    other.set(np.arange(begin, end), np.full(end - begin, 0.25))
    assert (
        np.array_equal(one.masses, other.masses) and one.total == other.total and one.minimum == other.minimum
    )


def test_bad_masses_are_rejected_and_change_nothing() -> None:
    tree = SumMinTree(4)
    tree.set(np.arange(4), np.ones(4))
    for bad in (np.nan, np.inf, -1.0):
        with pytest.raises(ValueError, match="finite"):
            tree.set(np.array([0, 1]), np.array([5.0, bad]))
    for item in (-1, 4):
        with pytest.raises(IndexError):
            tree.set(np.array([0, item]), np.array([5.0, 5.0]))
    assert tree.total == 4
    with pytest.raises(ValueError, match="every mass is zero"):
        SumMinTree(4).draw(np.array([0.5]))
    with pytest.raises(ValueError, match="capacity"):
        SumMinTree(0)


def test_a_tree_comes_back_bit_by_bit() -> None:
    tree = SumMinTree(100)
    tree.set(np.arange(70), np.random.default_rng(0).random(70))
    other = SumMinTree(100)
    other.fill(0, 100, 7.0)
    other.load_state(tree.state())
    assert other.total == tree.total and other.minimum == tree.minimum
    assert np.array_equal(other.masses, tree.masses)


# ------------------------------------------------------------------------------------------------------ heap


def _check_heap(heap: RankHeap, keys: dict[int, float]) -> None:
    order = heap.order
    assert sorted(order) == sorted(keys)
    found = [keys[item] for item in order]
    assert all(found[(k - 1) // 2] >= found[k] for k in range(1, len(found)))
    assert np.array_equal(heap.positions(order.astype(np.int64)), np.arange(len(order)))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.floats(-5, 5)), max_size=80))
def test_the_array_stays_a_heap_and_knows_every_place(changes: list[tuple[int, float]]) -> None:
    heap, keys = RankHeap(21), {}
    for item, key in changes:
        heap.set(np.array([item]), np.array([key]))
        keys[item] = key
        _check_heap(heap, keys)
    heap.sort()
    _check_heap(heap, keys)
    found = [keys[item] for item in heap.order]
    assert found == sorted(found, reverse=True)


def test_of_duplicates_the_last_counts() -> None:
    heap = RankHeap(5)
    heap.fill(0, 5, 1.0)
    heap.set(np.array([3, 2, 3]), np.array([9.0, 5.0, 0.0]))
    heap.sort()
    assert heap.order[0] == 2 and heap.order[-1] == 3
    with pytest.raises(ValueError, match="finite"):
        heap.set(np.array([0]), np.array([np.nan]))
    with pytest.raises(IndexError):
        heap.set(np.array([5]), np.array([1.0]))


@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.0, 1.5, 60.0])
@pytest.mark.parametrize("capacity", [1, 2, 5, 100, 4097])
def test_ranks_are_drawn_by_their_running_sum(exponent: float, capacity: int) -> None:
    law = PowerLaw(capacity, exponent)
    for n in {1, capacity // 2 + 1, capacity}:
        exact = np.arange(1, n + 1.0) ** -exponent
        assert law.probabilities(n) == pytest.approx(exact / exact.sum())
        uniforms = np.random.default_rng(n).random(300)
        masses = (np.arange(300) + uniforms) / 300 * law.running[n - 1]
        assert np.array_equal(law.draw(n, uniforms), np.searchsorted(law.running[:n], masses, side="right"))
        if exponent < 10:  # else the last ranks weigh less than a float64 can tell
            assert law.draw(n, np.array([np.nextafter(1.0, 0.0)])) == [n - 1]


def test_the_structures_need_no_torch() -> None:
    code = "import sys, rlexp.buffers.priorities; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
