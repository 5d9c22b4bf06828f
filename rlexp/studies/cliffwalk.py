"""Updates until Blind Cliffwalk is solved, by the order of replay; ``rlexp report cliffwalk`` runs and draws this.

Schaul et al. 2016, section 3.1 and appendix B.1: a memory that holds what all ``2^n`` sequences of actions lead to,
``2^(n+1) - 2`` transitions in random order, and tabular Q-learning on one transition at a time, with a step size of
1/4, until the mean squared error of all action values is below 0.001. Orders of replay:

* uniform
* oracle: the transition whose update brings the values nearest to the true ones; no algorithm can know it
* fresh: the transition with the largest TD error as it is now, which would take a look at all of them for every update
* greedy: the transition with the largest TD error when it was last replayed
* proportional, rank: drawn by that TD error, with the exponents that the paper uses on Atari

Transitions begin with the largest priority (``max``, the algorithm as published) or with the TD errors of the first
values (``exact``).

Only oracle and fresh gain exponentially. A stored TD error is learned by replaying that very transition, so that the
other orders replay nearly each of the ``2^(n+1) - 2`` once, the many copies of early steps included, and uniform replay
takes only some 15 updates for each, at every length. To begin with exact errors does not help: one update of a copy
makes those of all the others wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from rlexp.buffers.jit import compiled
from rlexp.buffers.rank_heap import PowerLaw, RankHeap, draw_ranks, set_keys
from rlexp.buffers.sum_tree import SumMinTree, draw_masses, set_masses

Floats = npt.NDArray[np.float64]
ReplayMemory = npt.NDArray[np.int64]

ORDERS = ("uniform", "oracle", "fresh", "greedy", "proportional", "rank")
INITIAL = ("max", "exact")
EXPONENTS = {"proportional": 0.6, "rank": 0.7}
STEP_SIZE = 0.25
SOLVED = 1e-3
EPSILON = 1e-6
GIVE_UP = 2_000_000_000
_BLOCK = 4096


def transitions(n: int, rng: np.random.Generator) -> ReplayMemory:
    """Return the memory: ``2 * state + right`` of each transition, ``(2^(n+1) - 2,)``, shuffled.

    Of the ``2^n`` sequences half of those that reach a state take its right action, the other half fall.

    :param n: number of states
    :param rng: decides the order
    """
    copies = np.repeat(2 ** np.arange(n)[::-1], 2)
    replay_memory = np.repeat(np.arange(2 * n), copies)
    return rng.permutation(replay_memory)


def true_values(n: int) -> Floats:
    """Return the true action values, ``(2 n,)``, at the discount factor ``1 - 1/n`` of the paper.

    :param n: number of states
    """
    values = np.zeros(2 * n)
    values[1::2] = (1 - 1 / n) ** np.arange(n - 1, -1, -1)
    return values


def updates_until_solved(order: str, n: int, seed: int, initial: str = "max") -> int:
    """Return the number of updates until the values are right.

    :param order: one of :data:`ORDERS`
    :param n: number of states
    :param seed: of the memory's order, the first values and the draws
    :param initial: priorities of what was never replayed, one of :data:`INITIAL`
    :raises RuntimeError: when it takes more than :data:`GIVE_UP` updates
    """
    rng = np.random.default_rng(seed)
    replay_memory = transitions(n, rng)
    values, truth, gamma = rng.normal(0, 0.1, size=2 * n), true_values(n), 1 - 1 / n
    if order in ("oracle", "fresh"):
        return int(_best_first(values, truth, gamma, order == "oracle"))
    replay = _replayer(order, replay_memory, values, truth, gamma, initial)
    updates = 0
    while True:
        done, solved = replay(rng.random(_BLOCK))
        updates += done
        if solved:
            return updates
        if updates > GIVE_UP:
            raise RuntimeError(f"{order}, {n} states: not solved after {updates} updates")


def _replayer(
    order: str, replay_memory: ReplayMemory, values: Floats, truth: Floats, gamma: float, initial: str
) -> Callable[[Floats], tuple[int, bool]]:
    """Return what replays one transition per random number, and says how many it took and whether that was enough."""
    size = len(replay_memory)
    if order == "uniform":
        return lambda uniforms: _uniform(replay_memory, values, truth, gamma, uniforms)
    known = np.ones(2 * len(truth))
    if initial == "exact":
        known = np.abs([_error(values, kind, gamma) for kind in range(len(truth))]) + EPSILON
    if order == "proportional":
        tree = SumMinTree(size)
        tree.set(np.arange(size), known[replay_memory] ** EXPONENTS[order])
        drawn: Any = _proportional
        return lambda uniforms: drawn(
            *tree.arrays, EXPONENTS[order], replay_memory, values, truth, gamma, uniforms
        )
    heap = RankHeap(size)
    heap.set(np.arange(size), known[replay_memory])
    heap.sort()
    law = PowerLaw(size, EXPONENTS["rank"])
    greedy = order == "greedy"
    ranked: Any = _ranked
    return lambda uniforms: ranked(
        *heap.arrays, law.running, law.first, greedy, replay_memory, values, truth, gamma, uniforms
    )


# ------------------------------------------------------------------------------------------------- kernels


@compiled
def _error(values: Any, kind: int, gamma: float) -> Any:
    """TD error of a transition of some kind, ``2 * state + right``."""
    if kind % 2 == 0:
        return -values[kind]  # the fall: no reward, the end
    if kind == values.size - 1:
        return 1.0 - values[kind]
    return gamma * max(values[kind + 1], values[kind + 2]) - values[kind]


@compiled
def _mse(values: Any, truth: Any) -> Any:
    total = 0.0
    for kind in range(values.size):
        total += (values[kind] - truth[kind]) ** 2
    return total / values.size


@compiled
def _best_first(values: Any, truth: Any, gamma: float, knows_truth: bool) -> Any:
    updates = 0
    while _mse(values, truth) >= SOLVED:
        best, most = 0, -np.inf
        for kind in range(values.size):
            if knows_truth:
                moved = values.copy()
                _learn(moved, kind, gamma)
                merit = -_mse(moved, truth)
            else:
                merit = abs(_error(values, kind, gamma))
            if merit > most:
                best, most = kind, merit
        _learn(values, best, gamma)
        updates += 1
    return updates


@compiled
def _learn(values: Any, kind: int, gamma: float) -> Any:
    """Update one value and return the absolute TD error that did it."""
    error = _error(values, kind, gamma)
    values[kind] += STEP_SIZE * error
    return abs(error)


@compiled
def _uniform(replay_memory: Any, values: Any, truth: Any, gamma: float, uniforms: Any) -> Any:
    for k in range(uniforms.size):
        if _mse(values, truth) < SOLVED:
            return k, True
        _learn(values, replay_memory[int(uniforms[k] * replay_memory.size)], gamma)
    return uniforms.size, False


@compiled
def _proportional(
    sums: Any,
    minima: Any,
    starts: Any,
    counts: Any,
    alpha: float,
    replay_memory: Any,
    values: Any,
    truth: Any,
    gamma: float,
    uniforms: Any,
) -> Any:
    mass = np.empty(1)
    for k in range(uniforms.size):
        if _mse(values, truth) < SOLVED:
            return k, True
        item = draw_masses(sums, starts, uniforms[k : k + 1])[0]
        mass[0] = (_learn(values, replay_memory[item[0]], gamma) + EPSILON) ** alpha
        set_masses(sums, minima, starts, counts, item, mass)
    return uniforms.size, False


@compiled
def _ranked(
    keys: Any,
    items: Any,
    places: Any,
    size: Any,
    running: Any,
    first: Any,
    greedy: bool,
    replay_memory: Any,
    values: Any,
    truth: Any,
    gamma: float,
    uniforms: Any,
) -> Any:
    item, key = np.empty(1, dtype=np.int64), np.empty(1)
    for k in range(uniforms.size):
        if _mse(values, truth) < SOLVED:
            return k, True
        place = 0 if greedy else draw_ranks(running, first, size[0], uniforms[k : k + 1])[0]
        item[0] = items[place]
        key[0] = _learn(values, replay_memory[item[0]], gamma)
        set_keys(keys, items, places, size, item, key)
    return uniforms.size, False


# -------------------------------------------------------------------------------------------------- measuring


def measure(n_states: int = 16, seeds: int = 10) -> dict[str, Any]:
    """Run the whole study.

    :param n_states: the longest chain; every length from 2 on is measured
    :param seeds: repetitions per order and length
    :return: ``states``, the lengths; ``updates`` and ``growth`` by starting priorities and order of replay, see
        :func:`study` and :func:`growth`
    """
    states = list(range(2, n_states + 1))
    updates = {initial: study(states, seeds, initial) for initial in INITIAL}
    slopes = {
        initial: {
            order: growth(states, found[order], found["uniform"]) for order in ORDERS if order != "uniform"
        }
        for initial, found in updates.items()
    }
    return {"states": states, "updates": updates, "growth": slopes}


def study(states: Sequence[int], seeds: int, initial: str) -> dict[str, ReplayMemory]:
    """Return updates until solved by order of replay, ``(len(states), seeds)`` each.

    :param states: lengths of the chain
    :param seeds: repetitions; the seeds are ``0`` to ``seeds - 1``
    :param initial: one of :data:`INITIAL`
    """
    return {
        order: np.array(
            [[updates_until_solved(order, n, seed, initial) for seed in range(seeds)] for n in states]
        )
        for order in ORDERS
    }


def growth(states: Sequence[int], updates: ReplayMemory, uniform: ReplayMemory) -> tuple[float, float, float]:
    """Fit ``gain = a 2^(b n)`` to the gain over uniform replay of the same seed.

    :param states: lengths of the chain, n
    :param updates: of one order, ``(len(states), seeds)``
    :param uniform: of uniform replay, likewise
    :return: b, and its 95 % interval (Student's t) over seeds
    """
    gains = np.log2(uniform / updates)
    slopes = np.polyfit(states, gains, 1)[0]
    margin = stdtrit(len(slopes) - 1, 0.975) * slopes.std(ddof=1) / np.sqrt(len(slopes))
    return float(slopes.mean()), float(slopes.mean() - margin), float(slopes.mean() + margin)
