"""CartPole while actors are killed at random: ``python tests/benchmarks/ray_kills.py [--every 5] [--shards 2]``.

R2D2 learns on Ray until it is solved, the mean of 8 greedy episodes of at most 200 steps being at least 195, measured
every 1,000 steps. Now and then, at random, the process of an actor (with ``--shards 2`` or more also that of a shard, a
quarter of the time) gets SIGKILL. Prints what it took, how many died, and how long the learner ever had to wait for a
batch or between two updates, evaluations left out. Ends with 1 when it was not solved. Linux only.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from rlexp import R2D2
from rlexp.distributed.engine import Options
from rlexp.distributed.on_ray import RayEngine
from rlexp.distributed.training import Training
from rlexp.runs.evaluation import Evaluator

ARGUMENTS: dict[str, Any] = {
    "learning_rate": 1e-3,
    "batch_size": 32,
    "sequence_length": 20,
    "train_freq": 4,
    "target_update_interval": 100,
}


def cartpole() -> gymnasium.Env[Any, Any]:
    """Build an environment."""
    return gymnasium.make("CartPole-v1", max_episode_steps=200)


def tasks(n_envs: int) -> DummyVecEnv:
    """Build an actor's tasks."""
    return DummyVecEnv([lambda: Monitor(cartpole())] * n_envs)


class Solved(BaseCallback):
    """Ends training when the environment is solved, and watches how long nothing was learned."""

    def __init__(self) -> None:
        super().__init__()
        self.solved = False
        self.longest_gap_s = self.evaluated_s = 0.0
        self._next = 1000
        self._evaluator = Evaluator(cartpole, 8, 8, 123, True)
        self._updates = 0
        self._at = time.perf_counter()

    def _on_rollout_start(self) -> None:
        now = time.perf_counter()
        if self.model._n_updates > self._updates:
            if self._updates > 0:
                self.longest_gap_s = max(self.longest_gap_s, now - self._at)
            self._updates, self._at = self.model._n_updates, now

    def _on_step(self) -> bool:
        if self.num_timesteps < self._next:
            return True
        self._next += 1000
        since = time.perf_counter()
        self.solved = bool(self._evaluator.evaluate(self.model)["return_mean"] >= 195)
        passed = time.perf_counter() - since
        self.evaluated_s += passed
        self._at += passed
        return not self.solved


def descendants(name: str) -> list[int]:
    """Return the processes below this one that call themselves so."""
    parents: dict[int, int] = {}
    named = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if (folder / "cmdline").read_bytes().startswith(f"ray::{name}".encode()):
                named.append(int(folder.name))
        except OSError:
            continue

    def below(process: int) -> bool:
        while process > 1 and process != os.getpid():
            process = parents.get(process, 0)
        return process == os.getpid()

    return [process for process in named if below(process)]


class Killer(threading.Thread):
    """Kills somebody now and then.

    :param every: seconds between two deaths, on average
    :param shards: whether shards die, too
    """

    def __init__(self, every: float, shards: bool, seed: int) -> None:
        super().__init__(daemon=True)
        self.killed = {"EnvWorker": 0, "ReplayShard": 0}
        self.over = threading.Event()
        self._every, self._shards = every, shards
        self._random = random.Random(seed)

    def run(self) -> None:
        """Go on until it is over."""
        while not self.over.wait(self._random.expovariate(1 / self._every)):
            kind = "ReplayShard" if self._shards and self._random.random() < 0.25 else "EnvWorker"
            victims = descendants(kind)
            if victims:
                os.kill(self._random.choice(victims), signal.SIGKILL)
                self.killed[kind] += 1


def main() -> int:
    """Train once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two deaths; 0: nobody dies")
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--envs", type=int, default=2, help="tasks of each")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--steps", type=int, default=150_000, help="at most")
    parser.add_argument("--update-ratio", default="serial", choices=["serial", "free"])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    th.set_num_threads(1)
    # As often per step as with one environment in one process.
    arguments = {**ARGUMENTS, "gradient_steps": given.envs}
    model = R2D2("MlpPolicy", tasks(given.envs), seed=given.seed, device="cpu", **arguments)
    watch, killer = Solved(), Killer(given.every or 1e9, given.shards > 1, given.seed)
    options = Options(actors=given.actors, replay_shards=given.shards, update_ratio=given.update_ratio)
    with RayEngine(None, given.actors + given.shards) as engine:
        training = Training(model, functools.partial(tasks, given.envs), options, engine)
        since = time.perf_counter()
        killer.start()
        training.learn(given.steps, callback=watch)
        passed = time.perf_counter() - since
        killer.over.set()
    found = training.summary()
    died = killer.killed
    print(f"{'solved' if watch.solved else 'NOT SOLVED'} after {model.num_timesteps:,} steps,", end=" ")
    print(f"{model._n_updates:,} updates and {passed:.0f} s (evaluations {watch.evaluated_s:.0f} s)")
    print(f"killed: {died['EnvWorker']} actors, {died['ReplayShard']} shards;", end=" ")
    print(f"noticed: {found['actor_deaths']} and {found['shard_deaths']};", end=" ")
    print(f"{found['sequences_lost']:,} sequences lost with shards")
    print(f"the learner waited for a batch {found['longest_wait_s']:.2f} s at most,", end=" ")
    print(
        f"{found['waited_s']:.1f} s in all; longest time without an update {watch.longest_gap_s:.2f} s;",
        end=" ",
    )
    print(f"load {os.getloadavg()[0]:.1f}")
    return 0 if watch.solved else 1


if __name__ == "__main__":
    raise SystemExit(main())
