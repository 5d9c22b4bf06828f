"""Prioritized replay beside cpprb and Tianshou: ``python tests/benchmarks/replay_speed.py [--scaling] [--plot FILE]``.

One process, one thread, by turns, so that a busy machine slows all of them; processor time, medians over rounds. Every
buffer holds a million transitions (observations float32[4]) with random priorities. A cycle is what a learner really
does: sample a full batch with weights, then update the priorities of what was drawn. Ours hands out torch tensors, the
others NumPy arrays. A library that is not installed is left out: ``pip install cpprb tianshou``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces

from rlexp.buffers.prioritized import PrioritizedReplayBuffer

CAPACITY = 10**6
OBSERVATION = spaces.Box(-1, 1, (4,), np.float32)
BULK = 64


class Ours:
    """Both schemes of ours."""

    def __init__(self, scheme: str, capacity: int = CAPACITY) -> None:
        self.buffer = PrioritizedReplayBuffer(
            capacity, OBSERVATION, spaces.Discrete(2), "cpu", scheme=scheme, gamma=0.99
        )
        zeros = np.zeros((capacity, 1, 1), np.float32)
        self.buffer.extend(*[np.zeros((capacity, 1, 4), np.float32)] * 2, zeros, zeros[..., 0], zeros[..., 0])
        self.buffer.priorities.put(np.arange(capacity), np.random.random_sample(capacity))
        self.one = (
            np.zeros((1, 4), np.float32),
            np.zeros((1, 1), np.int64),
            np.zeros(1),
            np.zeros(1, bool),
            [{}],
        )
        self.bulk = (
            np.zeros((BULK, 1, 4), np.float32),
            np.zeros((BULK, 1, 1), np.int64),
            np.zeros((BULK, 1)),
        )

    def cycle(self, errors: np.ndarray) -> None:
        found = self.buffer.sample(len(errors))
        self.buffer.update_priorities(found.indices, errors)

    def add(self) -> None:
        obs, action, reward, done, infos = self.one
        self.buffer.add(obs, obs, action, reward, done, infos)

    def add_bulk(self) -> None:
        obs, actions, zeros = self.bulk
        self.buffer.extend(obs, obs, actions, zeros, zeros)


class Cpprb:
    """cpprb's PrioritizedReplayBuffer."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        import cpprb

        shapes = {"obs": {"shape": 4}, "act": {}, "rew": {}, "next_obs": {"shape": 4}, "done": {}}
        self.buffer = cpprb.PrioritizedReplayBuffer(capacity, shapes, alpha=0.6)
        self.buffer.add(**self._rows(capacity), priorities=np.random.random_sample(capacity))
        self.one = {key: value[0] for key, value in self._rows(1).items()}
        self.bulk = self._rows(BULK)

    @staticmethod
    def _rows(n: int) -> dict[str, np.ndarray]:
        obs, flat = np.zeros((n, 4), np.float32), np.zeros(n, np.float32)
        return {"obs": obs, "act": flat, "rew": flat, "next_obs": obs, "done": flat}

    def cycle(self, errors: np.ndarray) -> None:
        found = self.buffer.sample(len(errors), beta=0.4)
        self.buffer.update_priorities(found["indexes"], errors)

    def add(self) -> None:
        self.buffer.add(**self.one)

    def add_bulk(self) -> None:
        self.buffer.add(**self.bulk)


class Tianshou:
    """Tianshou's PrioritizedReplayBuffer; it knows no bulk add."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        from tianshou.data import Batch
        from tianshou.data import PrioritizedReplayBuffer as Buffer

        self.buffer = Buffer(capacity, alpha=0.6, beta=0.4)
        obs, flat = np.zeros(4, np.float32), np.bool_(False)
        self.one = Batch(
            obs=obs, act=np.int64(0), rew=0.0, terminated=flat, truncated=flat, obs_next=obs, info=Batch()
        )
        self.buffer.add(self.one)
        # Adding a million by hand takes half a minute: declare the rest stored, and weigh all of it.
        self.buffer._size = capacity
        self.buffer.weight[np.arange(capacity)] = np.random.random_sample(capacity) ** 0.6

    def cycle(self, errors: np.ndarray) -> None:
        _, items = self.buffer.sample(len(errors))
        self.buffer.update_weight(items, errors)

    def add(self) -> None:
        self.buffer.add(self.one)

    add_bulk: Callable[[], None] | None = None


def rates(actions: dict[str, Callable[[], Any]], seconds: float, rounds: int) -> dict[str, float]:
    """Return calls per second of processor time, the median over rounds taken by turns."""
    counts: dict[str, int] = {}
    for name, action in actions.items():
        action()
        begin, calls = time.thread_time(), 0
        while time.thread_time() - begin < seconds / rounds / 2:
            action()
            calls += 1
        counts[name] = 2 * calls
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            begin = time.thread_time()
            for _ in range(counts[name]):
                action()
            times[name].append((time.thread_time() - begin) / counts[name])
    return {name: 1 / statistics.median(values) for name, values in times.items()}


def available() -> dict[str, Any]:
    """Build every buffer that is installed."""
    buffers: dict[str, Any] = {"rlexp proportional": Ours("proportional"), "rlexp rank": Ours("rank")}
    for name, kind in (("cpprb", Cpprb), ("Tianshou", Tianshou)):
        try:
            buffers[name] = kind()
        except ImportError:
            print(f"{name} is not installed and left out")
    return buffers


def side_by_side() -> None:
    """Print calls per second and our ratio to the best of the others."""
    buffers = available()
    rng = np.random.default_rng(0)
    jobs: dict[str, dict[str, Callable[[], Any]]] = {}
    for batch in (32, 512):
        errors = rng.random(batch)
        jobs[f"cycle {batch}"] = {
            name: lambda b=buffer, e=errors: b.cycle(e)  # type: ignore[misc]
            for name, buffer in buffers.items()
        }
    jobs["add 1"] = {name: buffer.add for name, buffer in buffers.items()}
    jobs[f"add {BULK}"] = {name: buffer.add_bulk for name, buffer in buffers.items() if buffer.add_bulk}
    print(f"{'calls/s':10s} " + " ".join(f"{name:>20s}" for name in buffers) + "   ours / best of the others")
    for job, actions in jobs.items():
        found = rates(actions, seconds=0.6, rounds=15)
        line = " ".join(f"{found[name]:20,.0f}" if name in found else f"{'-':>20s}" for name in buffers)
        others = [rate for name, rate in found.items() if not name.startswith("rlexp")]
        ratios = [found[name] / max(others) for name in buffers if name.startswith("rlexp")] if others else []
        print(f"{job:10s} {line}   " + " ".join(f"{ratio:.2f}x" for ratio in ratios))


def scaling(plot: str | None) -> None:
    """Print the time of a cycle of 32 against capacity, and draw it."""
    errors = np.random.default_rng(0).random(32)
    capacities = [10**exponent for exponent in range(3, 8)]
    found: dict[str, list[float]] = {"proportional": [], "rank": []}
    for capacity in capacities:
        actions = {scheme: Ours(scheme, capacity) for scheme in found}
        measured = rates({name: lambda b=b: b.cycle(errors) for name, b in actions.items()}, 0.4, 9)  # type: ignore[misc]
        for scheme in found:
            found[scheme].append(1e6 / measured[scheme])
    print("\nus per cycle of 32, by capacity")
    for scheme, times in found.items():
        cells = (f"{n:.0e}: {t:.1f}" for n, t in zip(capacities, times, strict=True))
        print(f"{scheme:13s} " + "   ".join(cells))
    if plot is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5, 3), layout="constrained")
        axes = figure.add_subplot()
        for scheme, times in found.items():
            axes.plot(capacities, times, marker="o", label=scheme)
        axes.set(xscale="log", xlabel="capacity", ylabel="µs per cycle of 32", ylim=(0, None))
        axes.legend()
        figure.savefig(plot)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--scaling", action="store_true", help="cost against capacity, 10^3 to 10^7")
    parser.add_argument("--plot", help="draw the cost against capacity into this file")
    arguments = parser.parse_args()
    th.set_num_threads(1)
    np.random.seed(0)
    side_by_side()
    if arguments.scaling or arguments.plot:
        scaling(arguments.plot)


if __name__ == "__main__":
    main()
