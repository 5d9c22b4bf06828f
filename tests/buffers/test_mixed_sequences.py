"""Replay of sequences: what is drawn how often, late priorities, the mixture with demonstrations, exact state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from rlexp.buffers.mixed_sequences import MixedSequences
from rlexp.buffers.prioritized_sequences import PrioritizedSequences
from rlexp.buffers.sequence_builder import SequenceLayout, Sequences, empty_sequences
from rlexp.runs import checkpoint

SPACE = spaces.Dict(
    {"seen": spaces.Box(-np.inf, np.inf, (1,), np.float32), "screen": spaces.Box(0, 255, (1, 2, 2), np.uint8)}
)
LAYOUT = SequenceLayout(1, 3, 2)
CPU = th.device("cpu")


def numbered(begin: int, n: int, lengths: list[int] | None = None) -> Sequences:
    """Sequences that carry their number."""
    found = empty_sequences(n, LAYOUT, SPACE, 2, 4)
    found.observations["seen"][...] = (begin + np.arange(n))[:, None, None]  # type: ignore[index]
    found.last_actions[...] = 1
    found.lengths[...] = 3 if lengths is None else lengths
    found.states[...] = (begin + np.arange(n))[:, None]
    return found


def store(capacity: int, **kwargs: object) -> PrioritizedSequences:
    return PrioritizedSequences(capacity, LAYOUT, SPACE, 2, 4, **kwargs)  # type: ignore[arg-type]


def numbers(sequences: Sequences) -> list[int]:
    return sequences.states[:, 0].astype(int).tolist()


@pytest.mark.parametrize("scheme", ["proportional", "rank"])
def test_draws_follow_priorities(scheme: str) -> None:
    replay = store(5, scheme=scheme, alpha=0.7, beta=0.6, priority_epsilon=0.0)
    replay.add(numbered(0, 5))
    priorities = np.array([5.0, 4.0, 3.0, 2.0, 1.0])  # in order, since a heap is only nearly sorted
    replay.update_priorities(np.arange(5), priorities)
    mass = priorities**0.7 if scheme == "proportional" else (6 - priorities) ** -0.7
    expected = mass / mass.sum()
    np.random.seed(0)
    keys, weights = replay.draw(20_000)
    np.testing.assert_allclose(np.bincount(keys, minlength=5) / 20_000, expected, atol=0.01)
    np.testing.assert_allclose(weights, ((5 * expected) ** -0.6 / ((5 * expected) ** -0.6).max())[keys])


def test_the_ring_and_late_priorities() -> None:
    replay = store(4)
    replay.add(numbered(0, 3))
    replay.add(numbered(3, 4))
    assert len(replay) == 4 and sorted(set(replay.draw(400)[0].tolist())) == [3, 4, 5, 6]
    assert numbers(replay.take(np.array([6, 3, 5]))) == [6, 3, 5]
    before = replay.priorities.probabilities().copy()
    replay.update_priorities(np.array([0, 1, 2]), np.full(3, 1e6))  # reported when all three are gone
    np.testing.assert_array_equal(replay.priorities.probabilities(), before)
    assert replay.max_priority == 1.0
    replay.update_priorities(np.array([2, 6]), np.array([1e6, 3.0]))
    assert replay.max_priority == pytest.approx(3.0) and replay.priorities.probabilities().argmax() == 6 % 4
    replay.add(numbered(7, 1))
    assert replay.priorities.probabilities()[7 % 4] == replay.priorities.probabilities()[6 % 4], (
        "the largest so far"
    )
    replay.add(numbered(8, 1), np.array([1e-3]))
    assert replay.priorities.probabilities().argmin() == 0


@pytest.mark.parametrize("ratio", [0.0, 0.25, 1.0])
def test_each_element_is_a_demonstration_with_probability_rho(ratio: float) -> None:
    """R1: ρ is the share of demonstrations, not of the others."""
    agent, demonstrations = store(10), store(3)
    agent.add(numbered(0, 10))
    demonstrations.add(numbered(100, 3))
    mixed = MixedSequences(agent, demonstrations, ratio, CPU)
    np.random.seed(1)
    counts = []
    for _ in range(300):
        drawn = mixed.sample(16)
        marked = drawn.sample.is_demonstration.bool()
        assert th.equal(marked, drawn.sample.states[:, 0] >= 100)
        assert int(marked.sum()) == len(drawn.demonstration_keys) == 16 - len(drawn.agent_keys)
        counts.append(int(marked.sum()))
    assert np.mean(counts) == pytest.approx(16 * ratio, abs=0.4)
    assert np.var(counts) == pytest.approx(16 * ratio * (1 - ratio), abs=0.8), "element by element"
    assert (mixed.agent_draws, mixed.demonstration_draws) == (4800 - sum(counts), sum(counts))


def test_few_demonstrations_and_none_of_the_agents_own() -> None:
    """R11: one demonstration fills a whole batch, with replacement; an empty agent's replay is made up for."""
    agent, demonstrations = store(10), store(1)
    demonstrations.add(numbered(100, 1))
    mixed = MixedSequences(agent, demonstrations, 0.25, CPU)
    drawn = mixed.sample(8)
    assert drawn.sample.is_demonstration.all() and drawn.sample.states[:, 0].tolist() == [100.0] * 8
    agent.add(numbered(0, 2))
    assert mixed.sample(8, demonstration_ratio=1.0).sample.is_demonstration.all()
    with pytest.raises(ValueError, match=r"zero|nothing"):
        MixedSequences(store(2), None, 0.0, CPU).sample(4)


def test_both_priorities_are_updated_separately() -> None:
    """R12: and each buffer's largest possible weight is 1."""
    agent, demonstrations = store(6, alpha=1.0, beta=1.0), store(6, alpha=1.0, beta=1.0)
    agent.add(numbered(0, 6))
    demonstrations.add(numbered(100, 6))
    mixed = MixedSequences(agent, demonstrations, 0.5, CPU)
    np.random.seed(3)
    drawn = mixed.sample(12)
    reported = np.where(drawn.sample.is_demonstration.numpy() > 0, 7.0, 2.0)
    mixed.update_priorities(drawn, reported)
    for replay, keys, value in (
        (agent, drawn.agent_keys, 2.0),
        (demonstrations, drawn.demonstration_keys, 7.0),
    ):
        expected = np.ones(6)
        expected[keys] = value
        np.testing.assert_allclose(replay.priorities.probabilities(), expected / expected.sum(), rtol=1e-5)
        assert replay.max_priority == pytest.approx(value)
    again = mixed.sample(64)
    marked = again.sample.is_demonstration.numpy() > 0
    for chosen in (marked, ~marked):
        assert again.sample.weights.numpy()[chosen].max() <= 1.0 + 1e-6
    first = again.sample.weights.numpy()[~marked][np.isin(again.agent_keys, drawn.agent_keys)]
    np.testing.assert_allclose(first, 0.5, rtol=1e-5)


def test_batches_are_no_longer_than_their_longest() -> None:
    replay = store(3)
    replay.add(numbered(0, 3, [1, 2, 1]))
    sample = MixedSequences(replay, None, 0.0, CPU).sample(6).sample
    rows = LAYOUT.burn_in + int(sample.lengths.max()) + 1
    assert sample.last_actions.shape == (rows, 6)
    assert isinstance(sample.observations, dict)
    assert sample.observations["screen"].shape == (rows, 6, 1, 2, 2)
    assert sample.observations["screen"].dtype == th.uint8


@pytest.mark.parametrize("scheme", ["proportional", "rank"])
def test_exact_state(tmp_path: Path, scheme: str) -> None:
    def build() -> MixedSequences:
        demonstrations = store(4, scheme=scheme)
        demonstrations.add(numbered(100, 4))
        return MixedSequences(store(5, scheme=scheme), demonstrations, 0.5, CPU)

    one = build()
    one.agent.add(numbered(0, 5))
    one.agent.add(numbered(5, 3), np.array([0.5, 2.0, 9.0]))
    one.update_priorities(one.sample(8), np.linspace(1, 3, 8))
    saved = checkpoint.save(tmp_path, {"replay": one.checkpoint_state()}, 1, keep_last=1)
    other = build()
    other.load_checkpoint_state(checkpoint.load(saved)["replay"])
    assert (other.agent_draws, other.demonstration_draws) == (one.agent_draws, one.demonstration_draws)
    for _ in range(3):
        state = np.random.get_state()
        mine = one.sample(16)
        np.random.set_state(state)
        theirs = other.sample(16)
        np.testing.assert_array_equal(mine.agent_keys, theirs.agent_keys)
        np.testing.assert_array_equal(mine.demonstration_keys, theirs.demonstration_keys)
        assert th.equal(mine.sample.weights, theirs.sample.weights)
        assert th.equal(mine.sample.states, theirs.sample.states)
        one.update_priorities(mine, np.linspace(0, 5, 16))
        other.update_priorities(theirs, np.linspace(0, 5, 16))
    changed = build()
    assert changed.demonstrations is not None
    changed.demonstrations.stored.last_rewards[2, 1] += 1
    with pytest.raises(ValueError, match="not those with which this run began"):
        changed.load_checkpoint_state(checkpoint.load(saved)["replay"])
