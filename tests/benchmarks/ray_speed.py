"""Costs and gains of actors and replay shards on Ray: ``python tests/benchmarks/ray_speed.py``.

First what single messages cost, then steps and updates per second with 1, 2 and 4 actors beside one process without
Ray, then what these costs amount to with 16, 64 and 256 actors that have a core each, which is arithmetic and no
measurement. R2D2 on CartPole: LSTM 64, sequences of 2 + 40 steps, batches of 64, one thread per process.
"""

from __future__ import annotations

import argparse
import functools
import os
import pickle
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from rlexp import R2D2
from rlexp.distributed.engine import Engine, Options, Ref
from rlexp.distributed.on_ray import RayEngine
from rlexp.distributed.training import Training

ARGUMENTS: dict[str, Any] = {"learning_starts": 1000, "train_freq": 8, "device": "cpu", "seed": 0}


def cartpole(n_envs: int) -> DummyVecEnv:
    """Build an actor's tasks."""
    return DummyVecEnv([lambda: Monitor(gymnasium.make("CartPole-v1"))] * n_envs)


def make(n_envs: int = 1) -> R2D2:
    """Build what is measured."""
    return R2D2("MlpPolicy", cartpole(n_envs), **ARGUMENTS)


def weights_of(model: R2D2) -> dict[str, Any]:
    """Return what actors get."""
    return {name: part.numpy() for name, part in model.policy.state_dict().items()}


def wait(engine: Engine, refs: list[Ref]) -> list[Any]:
    """Wait for answers."""
    left = list(refs)
    while left:
        there = engine.wait(left, 1.0)
        left = [ref for ref in left if ref not in there]
    return [engine.get(ref) for ref in refs]


def seconds(work: Callable[[], Any], times: int, turns: int = 5) -> float:
    """Return the best mean of several turns; a machine that does other things, too, only ever makes it longer."""
    found = []
    for _ in range(turns):
        since = time.perf_counter()
        for _ in range(times):
            work()
        found.append((time.perf_counter() - since) / times)
    return min(found)


# ------------------------------------------------------------------------------------------------- single messages


def costs(engine: Engine) -> dict[str, float]:
    """Return seconds and bytes of everything that is sent, each process being idle otherwise."""
    model = make()
    training = Training(model, functools.partial(cartpole, 1), Options(), engine)
    actor, shard = training._start_actor(0, 0), training._start_shard(0, 0)
    weights = weights_of(model)
    found: dict[str, float] = {"weights_bytes": sum(array.nbytes for array in weights.values())}
    laid = engine.put(weights)
    wait(engine, [engine.call(actor, "set_weights", laid)])
    collected = [engine.call_pair(actor, "collect", 0.4, 1) for _ in range(30)]
    reports = wait(engine, [report for report, _ in collected])
    sent = [(both, report) for (_, both), report in zip(collected, reports, strict=True) if report.sequences]
    complete, report = sent[-1]
    wait(engine, [engine.call(shard, "add", one) for one, _ in sent for _ in range(10)])
    batch = wait(engine, [engine.call(shard, "sample", 64)])[0]
    found["sequence_bytes"] = len(pickle.dumps(engine.get(complete), 5)) / report.sequences
    found["batch_bytes"] = len(pickle.dumps(batch, 5))

    def many(method: str, *arguments: Any, n: int = 100) -> None:
        wait(engine, [engine.call(shard, method, *arguments) for _ in range(n)])

    priorities = np.ones(64)
    found["put_weights"] = seconds(lambda: engine.put(weights), 20)
    found["set_weights"] = seconds(lambda: wait(engine, [engine.call(actor, "set_weights", laid)]), 20)
    found["add"] = seconds(lambda: many("add", complete), 1) / 100
    found["add_alone"] = seconds(lambda: wait(engine, [engine.call(shard, "add", complete)]), 50)
    found["sample"] = seconds(lambda: many("sample", 64), 1) / 100
    found["sample_alone"] = seconds(lambda: wait(engine, [engine.call(shard, "sample", 64)]), 50)
    found["priorities"] = seconds(lambda: many("update_priorities", batch.keys, priorities), 1) / 100

    def requests() -> None:
        for _ in range(100):
            engine.call(shard, "update_priorities", batch.keys, priorities)

    found["call"] = (
        seconds(requests, 1) / 100
    )  # what a message costs the one who sends it, the answer left unread
    wait(engine, [engine.call(shard, "sample", 1)])
    done = [engine.call(shard, "add", complete) for _ in range(100)]
    while len(engine.wait(done, 1.0)) < len(done):
        pass
    since = time.perf_counter()
    for ref in done:
        engine.wait(done, 0.0)
        engine.get(ref)
    found["read"] = (
        time.perf_counter() - since
    ) / 100  # and the one who looks for an answer among 100, and reads it
    found |= _work_costs(model, engine.get(complete)[0])
    for handle in (actor, shard):
        engine.kill(handle)
    return found


def _work_costs(model: R2D2, sequences: Any) -> dict[str, float]:
    """Return seconds of the work itself, here in this process."""
    model.learning_starts = 0
    model._setup_learn(10**9, None)
    model.collect_rollouts(  # some steps for the replay
        model.env,
        _Nothing(model),
        model.train_freq._replace(frequency=4000),
        model.replay_buffer,  # type: ignore[arg-type,union-attr]
    )
    observations: Any = model.env.reset()  # type: ignore[union-attr]
    actor = model.acting
    actor.begin(observations)

    def step() -> None:
        nonlocal observations
        actions = actor.act(observations, 0.4)
        observations, rewards, dones, infos = model.env.step(actions)  # type: ignore[union-attr]
        actor.observe(rewards, dones, infos, observations)

    return {
        "update": seconds(lambda: model._learn_from_replay(1, 64, None), 10),
        "step": seconds(step, 300),
        "initial_priorities": seconds(lambda: model.learner.initial_priorities(sequences), 20)
        / len(sequences),
    }


class _Nothing(BaseCallback):
    """Lets everything happen."""

    def __init__(self, model: R2D2) -> None:
        super().__init__()
        self.init_callback(model)

    def _on_step(self) -> bool:
        return True


# ------------------------------------------------------------------------------------------------------- throughput


class Watch(BaseCallback):
    """Measures for some seconds, from the moment when learning is under way."""

    def __init__(self, span: float) -> None:
        super().__init__()
        self.span = span
        self.first: tuple[float, int, int] | None = None
        self.rates = (0.0, 0.0)

    def _on_step(self) -> bool:
        now = time.perf_counter(), self.model.num_timesteps, self.model._n_updates
        if self.first is None:
            if self.model._n_updates >= 20:
                self.first = now
            return True
        passed = now[0] - self.first[0]
        if passed < self.span:
            return True
        self.rates = (now[1] - self.first[1]) / passed, (now[2] - self.first[2]) / passed
        return False


def throughput(
    engine: Engine | None, span: float, actors: int = 0, update_ratio: str = "serial"
) -> tuple[str, Watch]:
    """Train for some seconds; without actors in one process."""
    model, watch = make(), Watch(span)
    name = "one process, no Ray" if engine is None else f"{actors} actors, {update_ratio}"
    if engine is None:
        model.learn(10**9, callback=watch)
        return name, watch
    options = Options(actors=actors, update_ratio=update_ratio)
    training = Training(model, functools.partial(cartpole, 1), options, engine)
    training.learn(10**9, callback=watch)
    return f"{name}, longest wait for a batch {1e3 * training.longest_wait_s:.0f} ms", watch


# ------------------------------------------------------------------------------------------------------- arithmetic


def amounts(
    cost: dict[str, float], actors: int, period: int = 20, weights_every: int = 10
) -> dict[str, float]:
    """Return what actors with a core each would ask of the learner's process and of one shard.

    Episodes that are longer than a sequence are assumed: a message every ``period`` steps. The learner does whatever
    updates its remaining time allows.
    """
    step = cost["step"] + cost["initial_priorities"] / period
    messages = actors / (step * period)
    # Of each: the report is looked for and read, likewise the shard's answer; two calls go out.
    learner = messages * (2 * cost["call"] + 2 * cost["read"])
    # An update asks for a batch, reads it and reports priorities; now and then all actors get weights.
    broadcast = (cost["put_weights"] + actors * cost["call"]) / weights_every
    update = cost["update"] + 2 * cost["call"] + cost["read"] + broadcast
    updates = max(0.0, 1 - learner) / update
    return {
        "steps_per_s": actors / step,
        "messages_per_s": messages,
        "learner_busy": learner,
        "updates_per_s": updates,
        "updates_per_step": updates / (actors / step),
        "shard_busy": messages * cost["add"] + updates * (cost["sample"] + cost["priorities"]),
        "mb_per_s": (
            messages * cost["sequence_bytes"]
            + updates * (cost["batch_bytes"] + actors / weights_every * cost["weights_bytes"])
        )
        / 1e6,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each throughput")
    parser.add_argument("--actors", type=int, nargs="*", default=[1, 2, 4])
    given = parser.parse_args()
    th.set_num_threads(1)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first measurement")
    since = time.perf_counter()
    with RayEngine(None, max(given.actors, default=1) + 2) as engine:
        print(f"Ray started in {time.perf_counter() - since:.1f} s")
        cost = costs(engine)
        for name, value in cost.items():
            shown = f"{value:12,.0f} bytes" if name.endswith("_bytes") else f"{1e6 * value:12,.0f} µs"
            print(f"  {name:20} {shown}")
        rows = [throughput(None, given.seconds)]
        for update_ratio in ("serial", "free"):
            rows += [throughput(engine, given.seconds, actors, update_ratio) for actors in given.actors]
    alone = rows[0][1].rates
    for name, watch in rows:
        steps, updates = watch.rates
        ratios = f"{steps / alone[0]:5.2f} x, {updates / alone[1]:5.2f} x"
        print(f"  {steps:8.0f} steps/s {updates:8.1f} updates/s   {ratios}   {name}")
    print(f"load {os.getloadavg()[0]:.1f} after the last")
    print("arithmetic, every actor on a core of its own, one shard, as fast as everybody can:")
    for actors in (1, 4, 16, 64, 256):
        found = amounts(cost, actors)
        share = found["updates_per_step"]
        learned = f"one per {1 / share:,.0f} steps" if share > 0 else "no time for any"
        print(
            f"  {actors:4} actors: {found['steps_per_s']:9,.0f} steps/s in {found['messages_per_s']:7,.0f} messages/s; "
            f"learner's process {found['learner_busy']:5.0%} busy with them, {found['updates_per_s']:5.1f} updates/s, "
            f"{learned}; shard {found['shard_busy']:5.0%} busy; {found['mb_per_s']:6.1f} MB/s"
        )


if __name__ == "__main__":
    main()
