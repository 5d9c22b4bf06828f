"""What is drawn from DQfD's one replay is what was stored under that number, the agent's or a demonstration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rlexp.buffers.demonstration_replay import DemonstrationReplay
from rlexp.demonstrations.dataset import Episode

SPACE = spaces.Box(-1e6, 1e6, (1,), np.float32)
CAPACITY, N_DEMONSTRATIONS = 8, 6


def filled(n_steps: int = 1) -> DemonstrationReplay:
    """Observations of the agent are 0, 1, 2 ..., those of two demonstrated episodes of three steps 100, 101, ..."""
    buffer = DemonstrationReplay(CAPACITY, SPACE, spaces.Discrete(2), "cpu", n_steps=n_steps, gamma=0.5)
    buffer.episodes = lambda: tuple(
        Episode(
            np.arange(100 + first, 104 + first, dtype=np.float32)[:, None],
            np.array([0, 1, 0]),
            np.arange(first + 1, first + 4, dtype=np.float32),
            terminated,
            not terminated,
        )
        for first, terminated in ((0, True), (10, False))
    )
    buffer.load_demonstrations()
    for k in range(5):
        seen = np.array([[k]], np.float32)
        info: list[dict[str, Any]] = [{}]
        buffer.add(seen, seen + 1, np.array([k % 2]), np.array([-k], np.float32), np.array([False]), info)
    return buffer


def test_every_number_brings_its_own_transition() -> None:
    buffer = filled()
    np.random.seed(0)
    batch = buffer.sample_mixed(400)
    theirs = [100, 101, 102, 110, 111, 112]
    observation = {
        **{k: float(k) for k in range(5)},
        **{CAPACITY + k: float(o) for k, o in enumerate(theirs)},
    }
    rewards = {
        **{k: float(-k) for k in range(5)},
        **{CAPACITY + k: r for k, r in enumerate([1, 2, 3, 11, 12, 13])},
    }
    assert set(batch.many.indices.tolist()) == set(observation), "all of them are drawn, and no others"
    for row, number in enumerate(batch.many.indices.tolist()):
        assert batch.many.observations[row].item() == observation[number]
        assert batch.many.next_observations[row].item() == observation[number] + 1
        assert batch.one.next_observations[row].item() == observation[number] + 1
        assert batch.many.rewards[row].item() == batch.one.rewards[row].item() == rewards[number]
        assert batch.is_demonstration[row].item() == (number >= CAPACITY)
        # Only the first episode came to its own end.
        assert batch.one.dones[row].item() == (number == CAPACITY + 2)


def test_n_step_returns_stay_within_their_demonstration() -> None:
    batch = filled(n_steps=3).sample_mixed(300)
    wanted = {0: 1 + 2 / 2 + 3 / 4, 1: 2 + 3 / 2, 2: 3, 3: 11 + 12 / 2 + 13 / 4, 4: 12 + 13 / 2, 5: 13}
    for row, number in enumerate(batch.many.indices.tolist()):
        if number >= CAPACITY:
            assert batch.many.rewards[row].item() == pytest.approx(wanted[number - CAPACITY])


def test_priorities_go_to_the_numbers_that_were_drawn() -> None:
    buffer = filled()
    numbers = np.array([3, CAPACITY + 1])
    buffer.update_priorities(numbers, np.array([[2.0], [5.0]]))
    found = buffer.priorities.probabilities()
    expected = np.array([2.0 + 0.001, 5.0 + 1.0]) + buffer.priority_epsilon
    assert found[numbers[1]] / found[numbers[0]] == pytest.approx((expected[1] / expected[0]) ** buffer.alpha)
    assert np.argmax(found) == CAPACITY + 1
