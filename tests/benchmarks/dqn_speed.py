"""DQN's training step by kind of replay, and Pong next to SB3: ``python tests/benchmarks/dqn_speed.py [--pong]``.

By turns in one process, on one thread, so that a busy machine slows all of them; processor time, medians over rounds.
``--pong`` needs ``ale-py`` and, for Stable-Baselines3's own preprocessing, ``opencv-python-headless``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch as th
from stable_baselines3 import DQN as PlainDQN
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

from rlexp.algos.dqn.dqn import DQN
from rlexp.envs.atari import env as atari
from rlexp.envs.minatar import env as minatar
from rlexp.errors import UsageError

MINATAR: dict[str, Any] = {
    "buffer_size": 100_000,
    "learning_starts": 2000,
    "policy_kwargs": {"net_arch": [128]},
    "device": "cpu",
    "seed": 0,
}
PONG: dict[str, Any] = {
    "buffer_size": 10_000,
    "learning_starts": 200,
    "train_freq": 4,
    "batch_size": 32,
    "device": "cpu",
    "seed": 0,
}


def by_turns(actions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return seconds of processor time of each call."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            begin = time.process_time()
            action()
            times[name].append(time.process_time() - begin)
    return times


def training_steps(rounds: int = 30, updates: int = 25) -> None:
    """Print the time of one update of the MinAtar network, by kind of replay."""
    models = {
        replay: DQN("CnnPolicy", DummyVecEnv([lambda: minatar.make("breakout")]), replay=replay, **MINATAR)
        for replay in ("uniform", "proportional", "rank")
    }
    for model in models.values():
        model.learn(1900)
        # As in the middle of training: most of the buffer full, priorities spread out.
        buffer = model.replay_buffer
        for _ in range(40):
            n = 2000
            obs = np.random.randint(0, 2, (n, 1, *model.observation_space.shape), dtype=np.uint8)  # type: ignore[misc]
            buffer.extend(obs, obs, np.zeros((n, 1, 1)), np.zeros((n, 1)), np.zeros((n, 1)))
        buffer.update_priorities(np.arange(80_000), np.random.random_sample(80_000))
        model.train(5, 32)
    actions = {name: (lambda model=model: model.train(updates, 32)) for name, model in models.items()}
    times = by_turns(actions, rounds)
    print("MinAtar network, batch 32: ms per update")
    for name, seconds in times.items():
        ratio = statistics.median(np.array(seconds) / np.array(times["uniform"]))
        milliseconds = statistics.median(seconds) / updates * 1e3
        print(f"  {name:13s} {milliseconds:6.3f}   x {ratio:.3f} of uniform's")


def pong(rounds: int = 9, steps: int = 80) -> None:
    """Print environment steps per second, learning included."""
    ours = {
        f"rlexp {replay}": DQN(
            "CnnPolicy",
            DummyVecEnv([lambda: atari.make("pong")]),
            replay=replay,
            double_q=double,
            policy_kwargs={"net_arch": [512]},
            reward_clip=1.0,
            **PONG,
        )
        for replay, double in (("uniform", False), ("proportional", True), ("rank", True))
    }
    stacked = VecFrameStack(make_atari_env("PongNoFrameskip-v4", n_envs=1), n_stack=4)
    models: dict[str, Any] = {**ours, "Stable-Baselines3": PlainDQN("CnnPolicy", stacked, **PONG)}
    for model in models.values():
        model.learn(300)
    actions = {
        name: (lambda model=model: model.learn(steps, reset_num_timesteps=False))
        for name, model in models.items()
    }
    times = by_turns(actions, rounds)
    print("Pong, 84x84x4, an update of 32 every 4 steps: steps/s")
    for name, seconds in times.items():
        ratio = statistics.median(np.array(times["Stable-Baselines3"]) / np.array(seconds))
        kind = (
            "" if name == "Stable-Baselines3" else (" (double)" if "uniform" not in name else " (not double)")
        )
        print(f"  {name + kind:28s} {steps / statistics.median(seconds):6.1f}   x {ratio:.2f}")


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pong", action="store_true", help="Pong next to Stable-Baselines3")
    arguments = parser.parse_args()
    th.set_num_threads(1)
    try:
        training_steps()
        if arguments.pong:
            pong()
    except UsageError as error:
        print(f"left out: {error}")


if __name__ == "__main__":
    main()
