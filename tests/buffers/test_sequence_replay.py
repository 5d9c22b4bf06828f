"""SequenceBatch against a slow and obvious account of the same episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from rlexp.buffers.sequence_replay import SequenceBatch, SequenceReplay

BOX = spaces.Box(-1e9, 1e9, (2,), np.float32)
ACTIONS = spaces.Box(-1, 1, (1,), np.float32)


class EpisodeFixture:
    """Episodes of random lengths in some environments, every number of which tells where it belongs."""

    def __init__(self, n_envs: int, steps: int, buffer_size: int, **kwargs: Any) -> None:
        rng = np.random.default_rng(1)
        self.buffer = SequenceReplay(buffer_size, BOX, ACTIONS, "cpu", n_envs, **kwargs)
        self.episodes: dict[tuple[int, int], tuple[int, int]] = {}  # (env, step) -> (episode, place in it)
        self.ends: dict[tuple[int, int], str] = {}
        self.steps = steps
        place, episode = [0] * n_envs, list(range(n_envs))
        fresh = n_envs
        for step in range(steps):
            done, infos = np.zeros(n_envs), []
            for env in range(n_envs):
                self.episodes[env, step] = (episode[env], place[env])
                ends = rng.random() < 0.15
                limit = bool(rng.random() < 0.5)
                done[env] = ends
                infos.append({"TimeLimit.truncated": ends and limit})
                if ends:
                    self.ends[env, step] = "limit" if limit else "terminal"
            self.buffer.add(
                np.array([self.seen(env, step) for env in range(n_envs)]),
                np.array([self.seen(env, step, 1) for env in range(n_envs)]),
                np.array([[self.number(env, step)] for env in range(n_envs)], dtype=np.float32) / 1e4,
                np.array([self.number(env, step) + 0.5 for env in range(n_envs)]),
                done,
                infos,
            )
            for env in range(n_envs):
                if done[env]:
                    place[env], episode[env], fresh = 0, fresh, fresh + 1
                else:
                    place[env] += 1

    def seen(self, env: int, step: int, after: int = 0) -> list[float]:
        episode, place = self.episodes[env, step]
        return [episode + 1.0, place + after + 1.0]

    @staticmethod
    def number(env: int, step: int) -> float:
        return 100.0 * env + step + 1

    def oldest(self) -> int:
        return max(0, self.steps - self.buffer.buffer_size)

    def item(self, env: int, step: int) -> int:
        return (step % self.buffer.buffer_size) * self.buffer.n_envs + env

    def check(self, env: int, step: int, place: int, sequences: SequenceBatch, k: int) -> None:
        buffer = self.buffer
        mine = self.episodes[env, step][0]

        def there(other: int) -> bool:
            return self.oldest() <= other < self.steps and self.episodes[env, other][0] == mine

        learned = [s for s in range(step - place, step - place + buffer.length) if there(s)]
        warm = [s for s in range(learned[0] - buffer.burn_in, learned[0]) if there(s)]
        whole = warm + learned
        assert int(sequences.burn_in[k]) == len(warm) and int(sequences.lengths[k]) == len(learned)
        for p in range(buffer.burn_in + buffer.length):
            inside = p < len(whole)
            s = whole[p] if inside else -1
            assert float(sequences.mask[p, k]) == float(inside and p >= len(warm))
            assert float(sequences.rewards[p, k]) == (self.number(env, s) + 0.5 if inside else 0.0)
            expected = self.number(env, s) / 1e4 if inside else 0.0
            assert float(sequences.actions[p, k, 0]) == pytest.approx(expected, rel=1e-6)
            ended = inside and self.ends.get((env, s)) == "terminal"
            assert float(sequences.terminals[p, k]) == float(ended)
            if inside:
                assert sequences.observations[p, k].tolist() == self.seen(env, s)
                assert sequences.observations[p + 1, k].tolist() == self.seen(env, s, 1)
        assert not sequences.observations[len(whole) + 1 :, k].any()
        led = there(whole[0] - 1)
        expected = self.number(env, whole[0] - 1) / 1e4 if led else 0.0
        assert float(sequences.previous_actions[0, k, 0]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("length", "burn_in"), [(5, 0), (4, 6), (1, 2)])
@pytest.mark.parametrize(("n_envs", "buffer_size"), [(1, 200), (2, 74)], ids=["part-filled", "wrapped"])
def test_every_window(length: int, burn_in: int, n_envs: int, buffer_size: int) -> None:
    fixture = EpisodeFixture(n_envs, 61, buffer_size, length=length, burn_in=burn_in)
    asked = [
        (env, step, place)
        for env in range(n_envs)
        for step in range(fixture.oldest(), fixture.steps)
        for place in range(length)
    ]
    indices = np.array([fixture.item(env, step) for env, step, _ in asked])
    sequences = fixture.buffer.sequences_at(indices, np.array([place for *_, place in asked]))
    for k, (env, step, place) in enumerate(asked):
        fixture.check(env, step, place, sequences, k)


def test_a_shift_by_one_is_found() -> None:
    fixture = EpisodeFixture(1, 40, 100, length=4, burn_in=2)
    indices, positions = np.array([fixture.item(0, 20)]), np.array([2])
    right = fixture.buffer.sequences_at(indices, positions)
    fixture.check(0, 20, 2, right, 0)
    for name in ("rewards", "previous_actions", "observations", "terminals", "mask"):
        wrong = getattr(right, name).roll(1, dims=0)
        if th.equal(wrong, getattr(right, name)):
            continue
        with pytest.raises(AssertionError):
            fixture.check(0, 20, 2, right._replace(**{name: wrong}), 0)


@pytest.mark.parametrize("anchor", ["any", "last"])
def test_what_is_drawn(anchor: str) -> None:
    fixture = EpisodeFixture(2, 50, 200, length=4, burn_in=0, anchor=anchor)
    np.random.seed(0)
    sequences = fixture.buffer.sample_sequences(40_000)
    counts: dict[float, int] = {}
    learned = sequences.rewards[sequences.mask.bool()] if anchor == "any" else sequences.rewards.sum(0)
    if anchor == "last":  # the last step of each window
        last = (sequences.lengths - 1).unsqueeze(0)
        learned = sequences.rewards.gather(0, last).squeeze(0)
    for number in learned.tolist():
        counts[number] = counts.get(number, 0) + 1
    assert len(counts) == 100, "every step is learned from"
    share = np.array(list(counts.values())) / len(learned)
    assert share.max() < (0.0125 if anchor == "last" else 0.02)
    assert share.min() > (0.0075 if anchor == "last" else 0.002)


def test_a_break_is_an_end() -> None:
    buffer = SequenceReplay(100, BOX, ACTIONS, "cpu", 1, length=8)
    one = np.ones((1, 2), np.float32)
    for step in range(10):
        buffer.add(one * step, one * (step + 1), np.zeros((1, 1)), np.ones(1), np.zeros(1), [{}])
        if step == 4:
            buffer.break_trajectories()
    sequences = buffer.sequences_at(np.array([4, 5]), np.array([7, 7]))
    assert sequences.lengths.tolist() == [5, 1]


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="vector"):
        SequenceReplay(10, spaces.Discrete(3), ACTIONS)
    with pytest.raises(ValueError, match="anchor"):
        SequenceReplay(10, BOX, ACTIONS, anchor="first")
    with pytest.raises(ValueError, match="empty"):
        SequenceReplay(10, BOX, ACTIONS, "cpu").sample_sequences(3)
