"""Loops in a trajectory: stretches that come back to (nearly) the state where they began.

Wu & Rasmussen 2021, definition 1 and the search of Algorithm 1 (lines 2-10). NumPy only, so that
environments and evaluations can count loops without torch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

OUTSIDE = -1


def similar_states(states: npt.NDArray[Any], similarity: float = 0.99) -> npt.NDArray[np.bool_]:
    """Return which pairs of states count as the same: cosine similarity above the threshold.

    A zero vector points nowhere and is similar to nothing, itself included.

    :param states: shape ``(n, d)``
    :param similarity: threshold in (0, 1]; the paper's is 0.99
    :return: symmetric matrix of shape ``(n, n)``
    """
    directions = _directions(states)
    same: npt.NDArray[np.bool_] = directions @ directions.T > similarity
    return same


def stays(
    states: npt.NDArray[Any], next_states: npt.NDArray[Any], similarity: float = 0.99
) -> npt.NDArray[np.bool_]:
    """Return which steps leave the state unchanged: 1-hop loops.

    :param states: shape ``(n, d)``
    :param next_states: shape ``(n, d)``
    :param similarity: cosine similarity above which two states are the same
    :return: shape ``(n,)``
    """
    same: npt.NDArray[np.bool_] = (_directions(states) * _directions(next_states)).sum(axis=1) > similarity
    return same


def _directions(states: npt.NDArray[Any]) -> npt.NDArray[Any]:
    states = np.asarray(states)
    norms = np.linalg.norm(states, axis=1, keepdims=True)
    directions: npt.NDArray[Any] = states / np.where(norms > 0, norms, 1)
    return directions


def find_loops(
    states: npt.NDArray[Any], n_transitions: int | None = None, similarity: float = 0.99
) -> npt.NDArray[np.int64]:
    """Find the greedy longest loops of one episode (Algorithm 1, lines 2-10).

    From the first transition on: transition ``i`` opens a loop when some later state is similar to
    ``states[i]``. The last such state ``j`` ends it, transitions ``i .. j-1`` are inside, and the search
    continues at ``j``. The paper notes that where loops overlap the solution is not unique.

    :param states: shape ``(n_transitions, d)``, the states acted in, or ``(n_transitions + 1, d)`` when
        the state after the last transition is known and not terminal (an episode that was cut)
    :param n_transitions: number of transitions; None: as many as states
    :param similarity: cosine similarity above which two states are the same
    :return: shape ``(n_transitions,)``: for a transition inside a loop the index of the state after that
        loop, otherwise :data:`OUTSIDE`
    """
    n_states = len(states)
    n_transitions = n_states if n_transitions is None else n_transitions
    after_loop = np.full(n_transitions, OUTSIDE, dtype=np.int64)
    if n_states < 2:
        return after_loop
    later = np.triu(similar_states(states, similarity), k=1)
    last_similar = np.where(later.any(axis=1), n_states - 1 - later[:, ::-1].argmax(axis=1), OUTSIDE).tolist()
    start = 0
    while start < n_transitions:
        end = last_similar[start]
        if end == OUTSIDE:
            start += 1
        else:
            after_loop[start:end] = end
            start = end
    return after_loop


def count_loops(states: npt.NDArray[Any], similarity: float = 0.99) -> int:
    """Count the transitions of one episode that lie inside greedy longest loops.

    :param states: the states acted in, shape ``(n_transitions, d)``
    :param similarity: cosine similarity above which two states are the same
    """
    return int(np.count_nonzero(find_loops(states, similarity=similarity) != OUTSIDE))


def count_similar_pairs(states: npt.NDArray[Any], similarity: float = 0.99) -> int:
    """Count the pairs ``i < j`` of similar states of one episode: each "s_i == s_j" of Algorithm 1, line 7.

    :param states: the states acted in, shape ``(n_transitions, d)``
    :param similarity: cosine similarity above which two states are the same
    """
    if len(states) < 2:
        return 0
    return int(np.count_nonzero(np.triu(similar_states(states, similarity), k=1)))
