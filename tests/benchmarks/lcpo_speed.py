"""Training time of LCPO and TAM per transition, next to PPO's: ``python tests/benchmarks/lcpo_speed.py``.

They learn by turns in one process, on one thread, and CPU time is counted, so that other load on the machine
tells on neither. Prints times and ratios.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import gymnasium
import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3 import PPO

from rlexp.algos.lcpo.lcpo import LCPO
from rlexp.algos.tam.tam import TAM


class Chatter(gymnasium.Env[Any, Any]):
    """The shapes of the restaurant task (268 inputs, 14 actions, repeated states) at next to no cost."""

    observation_space = spaces.Box(0, 1, (268,), np.float32)
    action_space = spaces.Discrete(14)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.np_random.random(268, dtype=np.float32)
        return self.state, {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if self.np_random.random() < 0.7:
            self.state = self.np_random.random(268, dtype=np.float32)
        done = self.np_random.random() < 0.12
        return self.state, 19.0 if done and action < 7 else -1.0, done, False, {}


def measure(algorithms: dict[str, Any], rounds: int = 15, steps: int = 500) -> dict[str, float]:
    """Return the median milliseconds per transition of each algorithm, by turns."""
    times: dict[str, list[float]] = {name: [] for name in algorithms}
    for _ in range(rounds):
        for name, model in algorithms.items():
            begin = time.process_time()
            model.learn(steps, reset_num_timesteps=False)
            times[name].append((time.process_time() - begin) / steps * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    th.set_num_threads(1)
    arguments: dict[str, Any] = {
        "n_steps": 100,
        "batch_size": 16,
        "learning_rate": 1e-3,
        "policy_kwargs": {"net_arch": [130, 50], "activation_fn": th.nn.ReLU, "ortho_init": False},
        "max_grad_norm": 1e9,
        "device": "cpu",
        "seed": 0,
    }
    algorithms: dict[str, Any] = {"PPO": PPO, "LCPO": LCPO, "TAM": TAM}
    found = measure({name: kind("MlpPolicy", Chatter(), **arguments) for name, kind in algorithms.items()})
    for name, milliseconds in found.items():
        ratio = milliseconds / found["PPO"]
        print(f"{name:5s} {milliseconds:6.3f} ms per transition, {ratio:.3f} x PPO (environment and all)")


if __name__ == "__main__":
    sys.exit(main())
