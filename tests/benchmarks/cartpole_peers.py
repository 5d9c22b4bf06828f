"""What it takes to solve CartPole: ``python tests/benchmarks/cartpole_peers.py acer --seeds 5``.

CartPole of at most 200 steps counts as solved when the mean of 8 greedy episodes is at least 195; ours is measured
every 1,000 steps. Where DI-engine can be imported, its own configuration takes turns, seed by seed, measured as it
prescribes. Each attempt is a separate process with one thread; its processor time counts from after the imports,
evaluations included. Prints steps, seconds and the ratio of the medians.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MOST_STEPS = {"acer": 100_000, "r2d2": 150_000}


def ours(algo: str, seed: int) -> int:
    """Train our class until it is solved; return the environment's steps."""
    import gymnasium
    from stable_baselines3.common.callbacks import BaseCallback

    import rlexp
    from rlexp.runs.evaluation import Evaluator

    def cartpole() -> gymnasium.Env[Any, Any]:
        return gymnasium.make("CartPole-v1", max_episode_steps=200)

    class Solved(BaseCallback):
        def _on_training_start(self) -> None:
            self.evaluator, self.next = Evaluator(cartpole, 8, 8, 123, True), 1000

        def _on_step(self) -> bool:
            if self.num_timesteps < self.next:
                return True
            self.next += 1000
            return bool(self.evaluator.evaluate(self.model)["return_mean"] < 195)

    arguments: dict[str, Any] = {}
    if algo == "r2d2":
        arguments = {
            "learning_rate": 1e-3,
            "batch_size": 32,
            "sequence_length": 20,
            "train_freq": 4,
            "target_update_interval": 100,
        }
    model = getattr(rlexp, algo.upper())("MlpPolicy", cartpole(), seed=seed, device="cpu", **arguments)
    model.learn(MOST_STEPS[algo], callback=Solved())
    return int(model.num_timesteps)


def theirs(algo: str, seed: int) -> int:
    """Train DI-engine's own configuration until it is solved; return the environment's steps."""
    from ding.entry import serial_pipeline  # type: ignore[import-not-found]
    from ding.worker import SampleSerialCollector  # type: ignore[import-not-found]

    collect, steps = SampleSerialCollector.collect, [0]

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = collect(self, *args, **kwargs)
        steps.append(self.envstep)
        return found

    SampleSerialCollector.collect = counted
    module = importlib.import_module(f"dizoo.classic_control.cartpole.config.cartpole_{algo}_config")
    serial_pipeline((module.main_config, module.create_config), seed=seed, max_env_step=MOST_STEPS[algo])
    return int(steps[-1])


def attempt(algo: str, side: str, seed: int) -> dict[str, float]:
    """Run one attempt in a process and its own folder."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                sys.executable,
                "-W",
                "ignore",
                str(Path(__file__).resolve()),
                algo,
                "--side",
                side,
                "--seed",
                str(seed),
            ],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"steps"')]
    if not lines:
        raise SystemExit(f"{side}, seed {seed}: {done.stderr[-2000:]}")
    return dict(json.loads(lines[-1]))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("algo", choices=sorted(MOST_STEPS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--side", choices=("ours", "theirs"))
    arguments = parser.parse_args()
    if arguments.side is not None:
        import torch as th

        th.set_num_threads(1)
        importlib.import_module("rlexp.algos.acer" if arguments.side == "ours" else "ding.entry")
        begin = time.process_time()
        steps = (ours if arguments.side == "ours" else theirs)(arguments.algo, arguments.seed)
        print(json.dumps({"steps": steps, "seconds": time.process_time() - begin}))
        return
    sides = ["ours", "theirs"] if importlib.util.find_spec("ding") else ["ours"]
    found: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    for seed in range(arguments.seeds):
        for side in sides:
            found[side].append(attempt(arguments.algo, side, seed))
            row = found[side][-1]
            print(f"{side:7} seed {seed}: {row['steps']:8.0f} steps {row['seconds']:7.1f} s", flush=True)
    medians = {
        side: {key: statistics.median(row[key] for row in rows) for key in rows[0]}
        for side, rows in found.items()
    }
    for side, row in medians.items():
        print(f"{side:7} median: {row['steps']:8.0f} steps {row['seconds']:7.1f} s")
    if "theirs" in medians:
        ratios = {key: medians["ours"][key] / medians["theirs"][key] for key in ("steps", "seconds")}
        print(f"ours / DI-engine: {ratios['steps']:.2f} of the steps, {ratios['seconds']:.2f} of the time")


if __name__ == "__main__":
    main()
