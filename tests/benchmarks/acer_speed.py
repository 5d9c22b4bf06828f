"""Time of one ACER learner step: ``python tests/benchmarks/acer_speed.py``.

64 replayed segments of 32 steps, two networks of 64-64 with ReLU. Against the step with its parts left out, by turns
in one process on one thread, so that a busy machine slows all of them. Where DI-engine can be imported, its ACER
learner takes turns, too. Prints times and ratios.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch as th
from gymnasium import spaces

from rlexp.algos.acer.acer import ACER

N_STEPS, BATCH = 32, 64


class Shapes(gymnasium.Env[Any, Any]):
    """The shapes of CartPole, or of a continuous environment, at next to no cost."""

    observation_space = spaces.Box(-1, 1, (4,), np.float32)

    def __init__(self, continuous: bool = False) -> None:
        self.action_space = spaces.Box(-1, 1, (1,), np.float32) if continuous else spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        return self.observation_space.sample(), 1.0, self.np_random.random() < 0.02, False, {}


def learner(
    continuous: bool = False, policy_kwargs: dict[str, Any] | None = None, **kwargs: Any
) -> Callable[[], None]:
    """Return one update on replayed segments: sampling, gradient, step, average policy."""
    model = ACER(
        "MlpPolicy",
        Shapes(continuous),
        n_steps=N_STEPS,
        batch_size=BATCH,
        learning_starts=10**4,
        buffer_size=10**4,
        device="cpu",
        seed=0,
        policy_kwargs={"activation_fn": th.nn.ReLU, **(policy_kwargs or {})},
        **kwargs,
    )
    model.learn(5000)
    settings, device = model._settings(), th.device("cpu")

    def step() -> None:
        indices = model.replay_buffer.sample(BATCH)
        model._update(model.replay_buffer.get(indices, device), settings)

    return step


def di_engine() -> Callable[[], None] | None:
    """Return DI-engine's learner step on a batch of the same shapes, or None where it is not installed."""
    try:
        from ding.policy.acer import ACERPolicy  # type: ignore[import-not-found]
    except ImportError:
        return None
    config = ACERPolicy.default_config()
    config.cuda = False
    config.model = {
        "obs_shape": 4,
        "action_shape": 2,
        "encoder_hidden_size_list": [64, 64],
        "critic_head_hidden_size": 64,
        "actor_head_hidden_size": 64,
    }
    config.learn.batch_size, config.learn.unroll_len = BATCH, N_STEPS
    policy = ACERPolicy(config, enable_field=["learn"]).learn_mode

    def segment() -> dict[str, Any]:
        return {
            "obs": list(th.rand(N_STEPS, 4)),
            "next_obs": list(th.rand(N_STEPS, 4)),
            "logit": list(th.rand(N_STEPS, 2)),
            "action": list(th.randint(2, (N_STEPS,))),
            "reward": list(th.ones(N_STEPS, 1)),
            "done": [False] * N_STEPS,
        }

    batch = [segment() for _ in range(BATCH)]
    return lambda: policy.forward(batch)


def measure(steps: dict[str, Callable[[], None]], rounds: int = 15, repeat: int = 20) -> dict[str, float]:
    """Return the median milliseconds of each step, by turns; processor time, which others disturb less."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            begin = time.process_time()
            for _ in range(repeat):
                step()
            times[name].append((time.process_time() - begin) / repeat * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    th.set_num_threads(1)
    adam = {"optimizer_class": th.optim.Adam, "optimizer_kwargs": {"fused": True}}
    steps = {
        "ACER, discrete": learner(),
        "without trust region": learner(trust_region=False),
        "without Retrace": learner(retrace=False),
        "with fused Adam": learner(policy_kwargs=adam),
        "ACER, continuous": learner(continuous=True),
    }
    other = di_engine()
    if other is not None:
        steps["DI-engine, discrete"] = other
    times = measure(steps)
    for name, milliseconds in times.items():
        print(f"{name:22} {milliseconds:6.2f} ms   {milliseconds / times['ACER, discrete']:5.2f} x")


if __name__ == "__main__":
    main()
