"""Speed of the restaurant task on one core: turns per second through ``step``, state vector and policy
included.

Run with ``python tests/benchmarks/restaurant_speed.py [--seconds 20]``. On a busy machine the best of many
short chunks says what the code can do, the median what this run got.
"""

from __future__ import annotations

import argparse
import statistics
import time

from rlexp.envs.restaurant.env import RestaurantEnv

ROWS = (
    ("handcrafted, env1, 0 %", "handcrafted", {"error_rate": 0.0, "error_model": "random", "n_best": 1}),
    ("handcrafted, env4, 15 %", "handcrafted", {}),
    ("uniform, env4, 15 %", "uniform", {}),
)
CHUNK = 50
"""Dialogues per chunk."""


def run_chunk(env: RestaurantEnv, controller: str) -> float:
    """Turns per second over one chunk of dialogues, resets included."""
    turns = 0
    start = time.perf_counter()
    for _ in range(CHUNK):
        env.reset()
        done = False
        while not done:
            _, _, terminated, truncated, _ = env.step(env.controller_action(controller))
            done = terminated or truncated
            turns += 1
    return turns / (time.perf_counter() - start)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="time for each row")
    seconds = parser.parse_args().seconds
    print(f"{'':26}{'median':>12}{'best':>12}   turns/s")
    for title, controller, arguments in ROWS:
        env = RestaurantEnv(confusion_seed=0, **arguments)  # type: ignore[arg-type]
        env.reset(seed=0)
        for _ in range(10):
            run_chunk(env, controller)
        end = time.perf_counter() + seconds
        speeds = []
        while time.perf_counter() < end:
            speeds.append(run_chunk(env, controller))
        print(f"{title:26}{statistics.median(speeds):12,.0f}{max(speeds):12,.0f}")
    start = time.perf_counter()
    for _ in range(1000):
        RestaurantEnv(confusion_seed=0)
    print(f"making an environment: {(time.perf_counter() - start) * 1000:.0f} µs")


if __name__ == "__main__":
    main()
