"""Loops against hand-made episodes and a literal, slow reading of Algorithm 1."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from rlexp.losses.loops import OUTSIDE, count_loops, count_similar_pairs, find_loops, similar_states


def episode(names: str) -> np.ndarray:
    """One unit vector per letter; '0' is the zero vector."""
    return np.array([np.zeros(26) if name == "0" else np.eye(26)[ord(name) - ord("a")] for name in names])


def by_the_book(states: np.ndarray, n_transitions: int, similarity: float) -> list[int]:
    """Algorithm 1, lines 2-10, one comparison at a time."""

    def same(one: np.ndarray, other: np.ndarray) -> bool:
        norms = float(np.linalg.norm(one) * np.linalg.norm(other))
        return norms > 0 and float(one @ other) / norms > similarity

    after_loop = [OUTSIDE] * n_transitions
    pointer = 0
    for i in range(n_transitions):
        if i >= pointer:
            for j in range(i + 1, len(states)):
                if same(states[i], states[j]):
                    pointer = j
        if i < pointer:
            after_loop[i] = pointer
    return after_loop


@pytest.mark.parametrize(
    ("names", "n_transitions", "expected"),
    [
        ("abcd", 4, [-1, -1, -1, -1]),
        ("aab", 3, [1, -1, -1]),  # one hop
        ("abcad", 5, [3, 3, 3, -1, -1]),  # three hops
        ("aaaab", 5, [3, 3, 3, -1, -1]),  # the longest one swallows the shorter
        ("abab", 4, [2, 2, -1, -1]),  # what overlaps with an earlier loop is not one
        ("aabb", 4, [1, -1, 3, -1]),  # two loops, one after the other
        ("abcb", 4, [-1, 3, 3, -1]),
        ("abcba", 5, [4, 4, 4, 4, -1]),  # a loop within a loop
        ("ab", 1, [-1]),
        ("aa", 1, [1]),  # cut episode: the state after the last transition counts
        ("aba", 2, [2, 2]),
        ("0a0a", 4, [-1, 3, 3, -1]),  # zero vectors are similar to nothing
        ("000", 3, [-1, -1, -1]),
        ("a", 1, [-1]),
        ("", 0, []),
    ],
)
def test_hand_cases(names: str, n_transitions: int, expected: list[int]) -> None:
    states = episode(names) if names else np.zeros((0, 3))
    assert find_loops(states, n_transitions).tolist() == expected


@pytest.mark.parametrize("seed", range(40))
def test_against_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_states = int(rng.integers(1, 30))
    # Coarse vectors: every threshold sees many near and many exact repetitions, and a few zero vectors.
    states = rng.integers(0, 3, size=(n_states, 3)).astype(np.float32)
    n_transitions = n_states - int(rng.integers(0, 2))
    for similarity in (0.517, 0.907, 0.993):  # no cosine of such vectors: rounding cannot decide
        found = find_loops(states, n_transitions, similarity)
        assert found.tolist() == by_the_book(states, n_transitions, similarity)
        assert count_loops(states, similarity) == sum(
            end != OUTSIDE for end in by_the_book(states, n_states, similarity)
        )


def test_similarity_is_the_cosine_and_strict() -> None:
    states = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.2], [0.0, 1.0]])
    assert similar_states(states, 0.99).tolist() == [
        [True, True, False, False],
        [True, True, False, False],
        [False, False, True, False],
        [False, False, False, True],
    ]
    assert similar_states(states, 0.98)[0, 2]  # cos = 0.9806
    assert not similar_states(states, 1.0).any()  # above, not at, the threshold


def test_counts() -> None:
    assert count_loops(episode("aabb")) == 2
    assert count_loops(episode("aaaab")) == 3
    assert count_similar_pairs(episode("aaaab")) == 6
    assert count_similar_pairs(episode("abab")) == 2
    assert count_similar_pairs(episode("a")) == 0


def test_needs_no_torch() -> None:
    code = "import sys, rlexp.losses.loops; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
