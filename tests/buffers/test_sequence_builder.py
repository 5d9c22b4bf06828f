"""Sequences: what they hold, where they begin and end, and that they never leave their episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rlexp.buffers.sequence_builder import (
    SequenceBuilder,
    SequenceLayout,
    Sequences,
    arrays_of,
    cut_episodes,
    empty_sequences,
    join,
)
from rlexp.demonstrations.dataset import Episode
from rlexp.errors import UsageError

SPACE = spaces.Box(-np.inf, np.inf, (2,), np.float32)
N_ACTIONS = 3


class Tape:
    """Numbers every step of every episode, so that each step in a sequence can be identified."""

    def __init__(
        self, layout: SequenceLayout, lengths: list[list[int]], truncated: set[tuple[int, int]] = frozenset()
    ):  # type: ignore[assignment]
        self.layout, self.lengths, self.truncated = layout, lengths, truncated
        n_envs = len(lengths)
        self.builder = SequenceBuilder(n_envs, layout, SPACE, N_ACTIONS, 1)
        self.found: list[Sequences] = []
        episode, step = [0] * n_envs, [0] * n_envs
        for env in range(n_envs):
            self.builder.begin(env, self.observations(episode, step))
        while all(episode[env] < len(lengths[env]) for env in range(n_envs)):
            states = np.array(
                [[self.code(env, episode[env], step[env])] for env in range(n_envs)], np.float32
            )
            actions = np.array([(episode[env] + step[env]) % N_ACTIONS for env in range(n_envs)])
            rewards = states[:, 0] + 0.5
            step = [k + 1 for k in step]
            dones = np.array([step[env] == lengths[env][episode[env]] for env in range(n_envs)])
            dies = np.array([dones[env] and (env, episode[env]) not in truncated for env in range(n_envs)])
            after = self.observations(episode, step)
            complete = self.builder.step(states, actions, rewards, after, dones, dies)
            if complete is not None:
                self.found.append(complete)
            for env in np.flatnonzero(dones):
                episode[env], step[env] = episode[env] + 1, 0
                self.builder.begin(int(env), self.observations(episode, step))

    @staticmethod
    def code(env: int, episode: int, step: int) -> float:
        return 10_000.0 * env + 100.0 * (episode + 1) + step

    def observations(self, episode: list[int], step: list[int]) -> np.ndarray[Any, Any]:
        return np.array(
            [[self.code(env, episode[env], step[env]), -1.0] for env in range(len(episode))], np.float32
        )


LAYOUTS = [
    SequenceLayout(0, 4, 4),
    SequenceLayout(0, 4, 2),
    SequenceLayout(2, 4, 2),
    SequenceLayout(3, 5, 3),
    SequenceLayout(1, 1, 1),
    SequenceLayout(2, 6, 5),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_sequences_hold_one_episode(layout: SequenceLayout) -> None:
    """R4, R5: overlap by the period, padding marked, nothing of another episode, nothing lost and nothing twice."""
    lengths = [[1, 9, 4, 5, 23, 6], [7, 2, 13, 1, 8, 30]]
    tape = Tape(layout, lengths, {(0, 1), (1, 2)})
    all_of_them = join(tape.found)
    covered: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for k in range(len(all_of_them)):
        one = Sequences(*(part[k] for part in all_of_them))
        first = layout.burn_in
        code = one.observations[first, 0]  # type: ignore[index]
        env, episode, step = int(code // 10_000), int(code % 10_000 // 100) - 1, int(code % 100)
        length, whole = int(one.lengths), lengths[env][episode]
        covered.setdefault((env, episode), []).append((step, length))
        assert step % layout.period == 0 and bool(one.has_burn_in) == (step > 0 and layout.burn_in > 0)
        begin = -layout.burn_in if one.has_burn_in else 0
        assert one.states[0] == tape.code(env, episode, step + begin)
        for row in range(layout.n_observations):
            offset = row - layout.burn_in
            here = step + offset
            if not begin <= offset <= length:  # before the episode, or behind the end
                assert (one.observations[row] == 0).all()  # type: ignore[index]
                assert one.last_actions[row] == N_ACTIONS and one.last_rewards[row] == 0
                continue
            assert one.observations[row].tolist() == [tape.code(env, episode, here), -1]  # type: ignore[index]
            if here == 0:
                assert one.last_actions[row] == N_ACTIONS and one.last_rewards[row] == 0
            else:
                assert one.last_actions[row] == (episode + here - 1) % N_ACTIONS
                assert one.last_rewards[row] == tape.code(env, episode, here - 1) + 0.5
        ends = step + length == whole
        assert bool(one.terminated) == (ends and (env, episode) not in tape.truncated)
    finished = {(0, e) for e in range(6)} | {(1, e) for e in range(4)}
    assert finished <= set(covered)
    for env, episode in finished:
        sequences, whole = covered[env, episode], lengths[env][episode]
        assert [step for step, _ in sequences] == [k * layout.period for k in range(len(sequences))]
        assert all(length == layout.length for _, length in sequences[:-1])
        assert sum(sequences[-1]) == whole, "the last one ends with the episode"
        if len(sequences) > 1:
            assert sum(sequences[-2]) < whole, "and has something new"


def test_a_period_that_cannot_work() -> None:
    with pytest.raises(UsageError, match="period: 1 given, must be at least burn_in = 2"):
        SequenceLayout(2, 4, 1)
    with pytest.raises(UsageError, match="at most sequence_length = 4"):
        SequenceLayout(2, 4, 5)
    with pytest.raises(UsageError, match="sequence_length"):
        SequenceLayout(0, 0, 1)


def test_demonstrations_are_cut_likewise() -> None:
    """R6: they begin with a zero state, whoever played; a time limit stays one."""
    observations = np.arange(16, dtype=np.float32).reshape(8, 2)
    rewards = np.arange(7, dtype=np.float32)
    episodes = tuple(
        Episode(observations, np.arange(7) % 3, rewards, terminated=ends, truncated=not ends)
        for ends in (True, False)
    )
    found = cut_episodes(episodes, SequenceLayout(2, 4, 2), SPACE, N_ACTIONS, 6)
    assert found.lengths.tolist() == [4, 4, 3] * 2
    assert found.terminated.tolist() == [False, False, True] + [False] * 3
    assert found.has_burn_in.tolist() == [False, True, True] * 2
    assert found.states.shape == (6, 6) and not found.states.any()
    np.testing.assert_array_equal(found.observations[2, :6], observations[2:8])  # type: ignore[index]
    assert found.last_rewards[2].tolist() == [1, 2, 3, 4, 5, 6, 0]


def test_unfinished_windows_survive() -> None:
    def steps(builder: SequenceBuilder, begin: int, end: int) -> list[Sequences]:
        found = []
        for t in range(begin, end):
            code = np.full((1, 1), t, np.float32)
            row = np.full((1, 2), t + 1, np.float32)
            no = np.zeros(1, bool)
            found.append(builder.step(code, np.array([t % 3]), code[0], row, no, no))
        return [one for one in found if one is not None]

    layout = SequenceLayout(2, 5, 3)
    one = SequenceBuilder(1, layout, SPACE, N_ACTIONS, 1)
    one.begin(0, np.zeros((1, 2), np.float32))
    steps(one, 0, 7)
    other = SequenceBuilder(1, layout, SPACE, N_ACTIONS, 1)
    other.load_state(
        {key: (value.copy() if hasattr(value, "copy") else value) for key, value in one.state().items()}
    )
    mine, theirs = join(steps(one, 7, 20)), join(steps(other, 7, 20))
    for left, right in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(left, right)


def test_names_in_checkpoints_stay() -> None:
    """Checkpoints of older versions load: what they call ``burnt`` is ``has_burn_in``."""
    layout = SequenceLayout(2, 4, 2)
    builder = SequenceBuilder(1, layout, spaces.Box(0, 1, (1,), np.float32), 2, 0)
    assert set(builder.state()) == {
        "last_actions",
        "last_rewards",
        "burnt",
        "observations",
        "states",
        "filled",
    }
    stored = empty_sequences(1, layout, spaces.Box(0, 1, (1,), np.float32), 2, 0)
    assert set(arrays_of(stored)) == {
        "observations", "last_actions", "last_rewards", "lengths", "terminated", "burnt", "states",
    }  # fmt: skip
