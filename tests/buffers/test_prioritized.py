"""Draws against exact probabilities, weights, priorities; one test for every defect of the page (P1 to P9)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from scipy.stats import chisquare

from rlexp.buffers.prioritized import PrioritizedReplayBuffer

SCHEMES = ["proportional", "rank"]
_BOX = spaces.Box(-1e6, 1e6, (2,), np.float32)


def make(
    capacity: int, scheme: str = "proportional", n_envs: int = 1, **kwargs: Any
) -> PrioritizedReplayBuffer:
    return PrioritizedReplayBuffer(capacity, _BOX, spaces.Discrete(3), "cpu", n_envs, scheme=scheme, **kwargs)


def add(buffer: PrioritizedReplayBuffer, number: int, reward: float = 0.0, done: bool = False) -> None:
    """Store a step of every environment, identified by its number."""
    envs = buffer.n_envs
    obs = np.full((envs, 2), number, np.float32)
    buffer.add(
        obs, obs + 1, np.zeros((envs, 1), int), np.full(envs, reward), np.full(envs, done), [{}] * envs
    )


def fill(buffer: PrioritizedReplayBuffer, steps: int) -> None:
    for number in range(steps):
        add(buffer, number)


def counts(buffer: PrioritizedReplayBuffer, draws: int = 30_000, batch: int = 25) -> np.ndarray:
    found = np.concatenate([buffer.sample(batch).indices for _ in range(draws // batch)])
    return np.bincount(found, minlength=buffer.capacity)


def exact(buffer: PrioritizedReplayBuffer, errors: np.ndarray) -> np.ndarray:
    """The published probabilities, computed another way."""
    if buffer.scheme == "proportional":
        masses = (np.abs(errors) + buffer.priority_epsilon) ** buffer.alpha
    else:
        masses = np.empty(len(errors))
        masses[np.argsort(-np.abs(errors), kind="stable")] = np.arange(1, len(errors) + 1.0) ** -buffer.alpha
    return masses / masses.sum()


# ------------------------------------------------------------------------------------------------ statistics


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("capacity", [1, 7, 8, 33])
@pytest.mark.parametrize("steps", ["part", "full", "wrapped"])
def test_draws_follow_the_published_probabilities(scheme: str, capacity: int, steps: str) -> None:
    np.random.seed(1)
    buffer = make(capacity, scheme)
    fill(buffer, {"part": capacity // 2 + 1, "full": capacity, "wrapped": 2 * capacity + 3}[steps])
    stored = len(buffer)
    errors = np.random.default_rng(2).normal(size=stored) * 3
    # Duplicates inside one update: what comes last is what counts.
    twice = np.concatenate([np.arange(stored), np.arange(stored)])
    buffer.update_priorities(twice, np.concatenate([errors[::-1] + 10, errors]))
    if scheme == "rank":
        buffer.priorities._heap.sort()  # between two sorts the heap's place stands for the rank; see below
    assert buffer.priorities.probabilities()[:stored] == pytest.approx(exact(buffer, errors))
    found = counts(buffer)
    assert found[stored:].sum() == 0
    if stored > 1:
        # Stratified draws vary less than independent ones, so a right buffer passes more easily.
        assert chisquare(found[:stored], exact(buffer, errors) * found.sum()).pvalue > 1e-3


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("n_envs", [1, 3])
def test_single_draws_follow_the_exact_probabilities(scheme: str, n_envs: int) -> None:
    np.random.seed(3)
    buffer = make(30, scheme, n_envs)
    fill(buffer, 17)
    rng = np.random.default_rng(0)
    for _ in range(20):
        buffer.update_priorities(buffer.sample(8).indices, rng.normal(size=8))
    stored = len(buffer)
    found = counts(buffer, 20_000, batch=1)[:stored]
    assert chisquare(found, buffer.priorities.probabilities()[:stored] * found.sum()).pvalue > 1e-3


@pytest.mark.parametrize("scheme", SCHEMES)
def test_draws_are_stratified(scheme: str) -> None:
    np.random.seed(0)
    buffer = make(100, scheme, alpha=0.0)
    fill(buffer, 100)
    for _ in range(20):
        drawn = buffer.sample(50).indices
        if scheme == "proportional":
            assert np.array_equal(drawn // 2, np.arange(50)), "one from each fiftieth of the mass"
        assert len(set(drawn.tolist())) == 50


@pytest.mark.parametrize("scheme", SCHEMES)
def test_alpha_0_is_uniform_and_weighs_nothing(scheme: str) -> None:
    np.random.seed(0)
    buffer = make(11, scheme, alpha=0.0, beta=1.0)
    fill(buffer, 11)
    buffer.update_priorities(np.arange(11), np.arange(11.0) ** 3)
    assert buffer.priorities.probabilities() == pytest.approx(np.full(11, 1 / 11))
    assert buffer.sample(20).weights.numpy() == pytest.approx(np.ones((20, 1)))


def test_the_heap_stays_near_the_true_ranks() -> None:
    rng = np.random.default_rng(0)
    np.random.seed(0)
    buffer = make(1000, "rank")
    fill(buffer, 1000)
    errors = np.zeros(1000)
    for _ in range(300):
        drawn = buffer.sample(32).indices
        errors[drawn] = rng.exponential(size=32)
        buffer.update_priorities(drawn, errors[drawn])

    def distance() -> float:
        """Total variation between what is drawn from and what would be drawn from with exact ranks."""
        return float(0.5 * np.abs(buffer.priorities.probabilities() - exact(buffer, errors)).sum())

    assert distance() < 0.2, "a heap that nobody sorted; with ranks at random it would be about 0.35"
    buffer.priorities._heap.sort()
    assert distance() < 1e-9


def test_the_heap_is_sorted_when_it_is_time() -> None:
    buffer = make(64, "rank", sort_every=100)
    rng = np.random.default_rng(0)
    fill(buffer, 64)
    errors = rng.random(64)
    buffer.update_priorities(rng.permutation(64), errors)
    for number in range(36):
        add(buffer, number)
    keys = buffer.priorities._heap._keys
    assert (np.diff(keys) <= 0).all()


def test_probabilities_agree_with_an_independent_library() -> None:
    cpprb = pytest.importorskip("cpprb")
    errors = np.random.default_rng(0).random(37) + 0.01
    theirs = cpprb.PrioritizedReplayBuffer(37, {"number": {}}, alpha=0.6, eps=0.0)
    theirs.add(number=np.arange(37), priorities=errors)
    np.random.seed(0)
    ours = make(37, priority_epsilon=0.0, alpha=0.6, beta=0.4)
    fill(ours, 37)
    ours.update_priorities(np.arange(37), errors)
    their_counts = np.zeros(37)
    for _ in range(400):
        found = theirs.sample(64, beta=0.4)
        np.add.at(their_counts, found["indexes"], 1)
    probabilities = ours.priorities.probabilities()
    assert chisquare(their_counts, probabilities * their_counts.sum()).pvalue > 1e-3
    # Their weights, like ours, are relative to the largest that the buffer could give.
    weights = (probabilities[found["indexes"]] / probabilities.min()) ** -0.4
    assert found["weights"] == pytest.approx(weights, rel=1e-4)


# --------------------------------------------------------------------------------------- weights and priorities


@pytest.mark.parametrize("scheme", SCHEMES)
def test_weights_are_the_published_ones(scheme: str) -> None:
    np.random.seed(0)
    for by in ("buffer", "batch"):
        buffer = make(40, scheme, weights_by=by, beta=0.5)
        fill(buffer, 33)
        buffer.update_priorities(np.arange(33), np.random.default_rng(1).normal(size=33))
        found = buffer.sample(10)
        probabilities = buffer.priorities.probabilities()[:33]
        weights = (33 * probabilities) ** -0.5
        largest = weights.max() if by == "buffer" else weights[found.indices].max()
        assert found.weights.shape == (10, 1) and found.weights.dtype == th.float32
        assert found.weights.numpy().ravel() == pytest.approx(weights[found.indices] / largest, rel=1e-5)


def test_beta_grows_linearly_to_1() -> None:
    buffer = make(8, beta=0.4)
    found = []
    for remaining in (1.0, 0.5, 0.0):
        buffer.anneal(remaining)
        found.append(buffer.beta)
    assert found == pytest.approx([0.4, 0.7, 1.0])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_new_transitions_enter_with_the_largest_priority_ever(scheme: str) -> None:
    buffer = make(4, scheme, alpha=1.0, priority_epsilon=0.0)
    fill(buffer, 1)
    assert buffer.max_priority == 1.0
    buffer.update_priorities(np.array([0]), np.array([-5.0]))
    buffer.update_priorities(
        np.array([0]), np.array([0.5])
    )  # the largest priority is remembered, not looked up
    add(buffer, 1)
    ratio = buffer.priorities.probabilities()[1] / buffer.priorities.probabilities()[0]
    assert ratio == pytest.approx(10.0 if scheme == "proportional" else 2.0)


def test_published_exponents_are_the_defaults() -> None:
    assert (make(2).alpha, make(2).beta) == (0.6, 0.4)
    assert (make(2, "rank").alpha, make(2, "rank").beta) == (0.7, 0.5)


def test_invalid_arguments_raise() -> None:
    for arguments in ({"alpha": -1.0}, {"beta": 1.5}, {"weights_by": "moon"}, {"priority_epsilon": -1.0}):
        with pytest.raises(ValueError):
            make(4, **arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="scheme"):
        make(4, "greedy")


# ------------------------------------------------------------------------------------ the page's defects, P1 to P9


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("capacity", [1, 5, 8])
def test_p1_the_buffer_wraps_around(scheme: str, capacity: int) -> None:
    buffer = make(capacity, scheme)
    fill(buffer, 3 * capacity + 1)
    assert len(buffer) == capacity
    assert buffer.observations[0, 0, 0] == 3 * capacity
    assert set(buffer.sample(200).indices.tolist()) <= set(range(capacity))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("capacity", [3, 7, 9, 513])
def test_p2_every_transition_can_be_drawn_at_odd_capacities(scheme: str, capacity: int) -> None:
    np.random.seed(0)
    buffer = make(capacity, scheme, alpha=0.0)
    fill(buffer, capacity)
    assert set(buffer.sample(4 * capacity).indices.tolist()) == set(range(capacity))
    found = buffer.sample(4 * capacity)
    assert np.array_equal(found.observations.numpy()[:, 0], found.indices), (
        "the item drawn is the item handed out"
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_p3_priorities_do_not_care_for_signs_and_are_never_zero(scheme: str) -> None:
    errors = np.array([-3.0, 3.0, 0.0, -0.5])
    one, other = make(4, scheme), make(4, scheme)
    for buffer, given in ((one, errors), (other, np.abs(errors))):
        fill(buffer, 4)
        buffer.update_priorities(np.arange(4), given)
    assert np.array_equal(one.priorities.probabilities(), other.priorities.probabilities())
    assert (one.priorities.probabilities() > 0).all()
    if scheme == "proportional":
        assert one.priorities.probabilities() == pytest.approx(exact(one, errors))


def test_p4_the_smallest_priority_rises_again() -> None:
    buffer = make(4, beta=1.0, alpha=1.0, priority_epsilon=0.0)
    fill(buffer, 4)
    buffer.update_priorities(np.arange(4), np.array([1e-6, 2.0, 2.0, 2.0]))
    buffer.update_priorities(np.array([0]), np.array([2.0]))
    assert buffer.sample(8).weights.numpy() == pytest.approx(1.0), "all alike: no correction is left"


def test_p6_one_transition_with_a_vector_state_is_one_transition() -> None:
    buffer = make(1)
    add(buffer, 5)
    add(buffer, 6)
    found = buffer.sample(3)
    assert found.observations.tolist() == [[6.0, 6.0]] * 3 and len(buffer) == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_p8_a_batch_is_full_even_when_the_buffer_is_not(scheme: str) -> None:
    buffer = make(100, scheme)
    fill(buffer, 2)
    assert len(buffer.sample(32).indices) == 32
    with pytest.raises(ValueError, match="cannot sample"):
        make(100, scheme).sample(1)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_p9_empty_slots_are_never_drawn(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = make(100, scheme)
    fill(buffer, 3)
    buffer.update_priorities(np.arange(3), np.array([0.1, 0.2, 0.7]))
    for edge in (0.0, np.nextafter(1.0, 0.0)):
        monkeypatch.setattr(np.random, "random_sample", lambda n, edge=edge: np.full(n, edge))
        assert buffer.sample(64).indices.max() <= 2
    with pytest.raises(IndexError):
        buffer.update_priorities(np.array([3]), np.array([1.0]))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_errors_that_are_not_finite_raise(scheme: str) -> None:
    buffer = make(4, scheme)
    fill(buffer, 4)
    before = buffer.priorities.probabilities()
    with pytest.raises(ValueError, match="finite"):
        buffer.update_priorities(np.array([0, 1]), th.tensor([[5.0], [float("nan")]]))
    assert np.array_equal(before, buffer.priorities.probabilities())
    assert buffer.max_priority == 1.0
