"""The study of replay orders: the memory, the values, and the kernels against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from rlexp.studies import cliffwalk


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_memory_is_what_all_sequences_lead_to(n: int) -> None:
    counted = np.zeros(2 * n, int)
    for number in range(2**n):
        for state in range(n):
            right = number >> state & 1
            counted[2 * state + right] += 1
            if not right:
                break
    replay_memory = cliffwalk.transitions(n, np.random.default_rng(0))
    assert len(replay_memory) == 2 ** (n + 1) - 2
    assert np.array_equal(np.bincount(replay_memory, minlength=2 * n), counted)


def test_true_values_have_no_error() -> None:
    values = cliffwalk.true_values(6)
    assert [cliffwalk._error(values, kind, 1 - 1 / 6) for kind in range(12)] == pytest.approx([0.0] * 12)
    assert values[-1] == 1 and values[0] == 0


def _plain_uniform(n: int, seed: int) -> int:
    rng = np.random.default_rng(seed)
    replay_memory = cliffwalk.transitions(n, rng)
    values, truth, gamma = rng.normal(0, 0.1, size=2 * n), cliffwalk.true_values(n), 1 - 1 / n
    updates = 0
    while True:
        for uniform in rng.random(4096):
            if np.mean((values - truth) ** 2) < 1e-3:
                return updates
            state, right = divmod(int(replay_memory[int(uniform * len(replay_memory))]), 2)
            after = 0.0 if not right or state == n - 1 else values[2 * state + 2 : 2 * state + 4].max()
            reward = 1.0 if right and state == n - 1 else 0.0
            values[2 * state + right] += 0.25 * (reward + gamma * after - values[2 * state + right])
            updates += 1


def test_uniform_replay_is_plain_q_learning() -> None:
    for seed in range(3):
        assert cliffwalk.updates_until_solved("uniform", 5, seed) == _plain_uniform(5, seed)


@pytest.mark.parametrize("initial", ["max", "exact"])
def test_prioritizing_helps_and_more_so_the_longer_the_chain(initial: str) -> None:
    states = [3, 5, 7, 9]
    found = cliffwalk.study(states, 4, initial)
    medians = {order: np.median(updates, axis=1) for order, updates in found.items()}
    for order in ("oracle", "fresh", "greedy", "proportional", "rank"):
        assert medians[order][-1] < medians["uniform"][-1] / 3
        assert cliffwalk.growth(states, found[order], found["uniform"])[0] > 0


def test_what_limits_prioritizing_is_that_stored_errors_are_out_of_date() -> None:
    states = [9, 11]
    found = cliffwalk.study(states, 4, "max")
    for row, n in enumerate(states):
        replay_memory = 2 ** (n + 1) - 2
        for order in ("greedy", "proportional", "rank"):
            assert np.median(found[order][row]) > 0.9 * replay_memory, "nearly all have to be replayed once"
        for order in ("oracle", "fresh"):
            assert np.median(found[order][row]) < 0.5 * replay_memory


def _plain_fresh(n: int, seed: int) -> int:
    rng = np.random.default_rng(seed)
    cliffwalk.transitions(n, rng)
    values, truth, gamma = rng.normal(0, 0.1, size=2 * n), cliffwalk.true_values(n), 1 - 1 / n
    updates = 0
    while np.mean((values - truth) ** 2) >= 1e-3:
        after = np.append(values.reshape(n, 2).max(axis=1)[1:] * gamma, 1.0)
        errors = np.stack([np.zeros(n), after], axis=1).reshape(-1) - values
        best = int(np.abs(errors).argmax())
        values[best] += 0.25 * errors[best]
        updates += 1
    return updates


def test_fresh_replays_the_largest_error_as_it_is_now() -> None:
    for seed in range(3):
        assert cliffwalk.updates_until_solved("fresh", 6, seed) == _plain_fresh(6, seed)
