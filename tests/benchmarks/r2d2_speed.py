"""Time of one R2D2 learner step: ``python tests/benchmarks/r2d2_speed.py [--rounds 15] [--cartpole 5]``.

64 sequences of 2 + 40 steps, an LSTM of 64, dueling heads, n = 5: drawing them, both unrolls, gradient, optimizer and
new priorities. Against the floor, forward and backward of a bare ``nn.LSTM`` over the same 42 steps, and, where it can
be imported, DI-engine's R2D2 learner with its own settings for CartPole. By turns in one process on one thread, so that
a busy machine slows all of them; processor time, medians. Prints times and ratios.

``--cartpole N``: steps and processor time of N seeds until the mean of 8 greedy CartPole episodes of at most 200 steps
is at least 195, measured every 1000 steps; evaluations included.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback

from rlexp.algos.r2d2.r2d2 import R2D2
from rlexp.runs.evaluation import Evaluator

BURN_IN, LENGTH, BATCH, UNITS = 2, 40, 64, 64


class Shapes(gymnasium.Env[Any, Any]):
    """The shapes of CartPole at next to no cost, in episodes of 200 steps."""

    observation_space = spaces.Box(-1, 1, (4,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return self.observation_space.sample(), 1.0, self.steps == 200, False, {}


def learner(net_arch: list[int]) -> Callable[[], None]:
    """Return one update: draw, gradient, step, priorities."""
    model = R2D2(
        "MlpPolicy",
        Shapes(),
        batch_size=BATCH,
        sequence_length=LENGTH,
        burn_in=BURN_IN,
        learning_starts=10**9,
        initial_priorities="max",
        device="cpu",
        seed=0,
        policy_kwargs={"net_arch": net_arch, "lstm_hidden_size": UNITS},
    )
    model.learn(4000)

    def step() -> None:
        drawn = model.replay_buffer.sample(BATCH)
        priorities, _ = model.learner.update(drawn.sample)
        model.replay_buffer.update_priorities(drawn, priorities)

    return step


def floor() -> Callable[[], None]:
    """Return forward and backward of the LSTM alone."""
    lstm = th.nn.LSTM(UNITS, UNITS)
    inputs = th.randn(BURN_IN + LENGTH, BATCH, UNITS, requires_grad=True)

    def step() -> None:
        lstm(inputs)[0].sum().backward()

    return step


def di_engine() -> Callable[[], None] | None:
    """Return DI-engine's learner step on a batch of the same shapes, or None where it is not installed."""
    try:
        from ding.policy.r2d2 import R2D2Policy  # type: ignore[import-not-found]
    except ImportError:
        return None
    config = R2D2Policy.default_config()
    config.cuda, config.priority, config.priority_IS_weight = False, False, False
    config.discount_factor, config.nstep, config.burnin_step = 0.995, 5, BURN_IN
    config.learn_unroll_len = LENGTH
    config.model = {"obs_shape": 4, "action_shape": 2, "encoder_hidden_size_list": [128, 128, UNITS]}
    config.learn.batch_size, config.learn.target_update_theta = BATCH, 0.001
    policy = R2D2Policy(config, enable_field=["learn"])
    rows = policy._sequence_len = BURN_IN + LENGTH  # which otherwise comes with its collector

    def sequence() -> dict[str, Any]:
        state = {"h": th.zeros(1, 1, UNITS), "c": th.zeros(1, 1, UNITS)}
        return {
            "obs": list(th.rand(rows, 4)),
            "action": list(th.randint(2, (rows,))),
            "reward": list(th.ones(rows, config.nstep)),
            "done": [False] * rows,
            "prev_state": [state] * rows,
            "null": [False] * rows,
            "value_gamma": [th.tensor(config.discount_factor**config.nstep)] * rows,
        }

    batch = [sequence() for _ in range(BATCH)]
    return lambda: policy.learn_mode.forward(batch)


def measure(steps: dict[str, Callable[[], None]], rounds: int = 15, repeat: int = 6) -> dict[str, float]:
    """Return the median milliseconds of each step, by turns."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            begin = time.process_time()
            for _ in range(repeat):
                step()
            times[name].append((time.process_time() - begin) / repeat * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


class _Solved(BaseCallback):
    def __init__(self) -> None:
        super().__init__()
        self._evaluator = Evaluator(_cartpole, 8, 8, 123, True)

    def _on_step(self) -> bool:
        if self.num_timesteps % 1000:
            return True
        return bool(self._evaluator.evaluate(self.model)["return_mean"] < 195)


def _cartpole() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1", max_episode_steps=200)


def cartpole(seeds: int) -> None:
    """Print what it takes to solve CartPole."""
    for seed in range(seeds):
        begin = time.process_time()
        model = R2D2(
            "MlpPolicy",
            _cartpole(),
            learning_rate=1e-3,
            batch_size=32,
            sequence_length=20,
            train_freq=4,
            target_update_interval=100,
            seed=seed,
            device="cpu",
        )
        model.learn(30_000, callback=_Solved())
        print(f"CartPole, seed {seed}: {model.num_timesteps:6d} steps, {time.process_time() - begin:5.1f} s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--cartpole", type=int, metavar="SEEDS", default=0)
    arguments = parser.parse_args()
    rounds = arguments.rounds
    th.set_num_threads(1)
    if arguments.cartpole:
        cartpole(arguments.cartpole)
        return
    steps = {
        "bare nn.LSTM": floor(),
        "R2D2, encoder 64": learner([UNITS]),
        "R2D2, encoder 128-128-64": learner([128, 128, UNITS]),
    }
    other = di_engine()
    if other is not None:
        steps["DI-engine, encoder 128-128-64"] = other
    times = measure(steps, rounds)
    for name, milliseconds in times.items():
        print(
            f"{name:30} {milliseconds:7.2f} ms   {milliseconds / times['bare nn.LSTM']:6.2f} x the bare LSTM"
        )
    if other is not None:
        ours = times["R2D2, encoder 128-128-64"]
        ratio = ours / times["DI-engine, encoder 128-128-64"]
        print(f"R2D2 takes {ratio:.2f} of DI-engine's time with the same layers")


if __name__ == "__main__":
    main()
