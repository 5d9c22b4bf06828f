"""One update of SAC-LSTM and of SLAC next to Stable-Baselines3's SAC.

By turns in one process, on one thread, so that a busy machine slows all of them; processor time, medians over rounds.
Sizes are those of Biemann et al. 2021: 5 observations, 4 actions, episodes that do not end.
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
from stable_baselines3 import SAC
from stable_baselines3.common.vec_env import DummyVecEnv

from rlexp.algos.sac_lstm.sac_lstm import SACLSTM
from rlexp.algos.slac.slac import SLAC


class Endless(gymnasium.Env[Any, Any]):
    """Noise, of the shape of the data centre."""

    observation_space = spaces.Box(-1, 1, (5,), np.float32)
    action_space = spaces.Box(-1, 1, (4,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin."""
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Go on."""
        return self.observation_space.sample(), float(self.observation_space.sample()[0]), False, False, {}


def by_turns(actions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return seconds of processor time of each call."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(rounds):
        for name, action in actions.items():
            begin = time.process_time()
            action()
            times[name].append(time.process_time() - begin)
    return times


def main(rounds: int = 25, updates: int = 4) -> None:
    """Print milliseconds per update and the ratio to SAC's."""
    th.set_num_threads(1)
    arguments: dict[str, Any] = {"device": "cpu", "seed": 0, "buffer_size": 10_000, "learning_starts": 1100}
    models: dict[str, tuple[Any, int]] = {
        "SB3 SAC, 256-256, batch 256": (SAC("MlpPolicy", DummyVecEnv([Endless]), **arguments), 256),
        "SAC-LSTM, length 20, batch 16, 256": (SACLSTM("MlpPolicy", DummyVecEnv([Endless]), **arguments), 16),
        "SAC-LSTM, one memory for both critics": (
            SACLSTM(
                "MlpPolicy", DummyVecEnv([Endless]), policy_kwargs={"shared_critic_lstm": True}, **arguments
            ),
            16,
        ),
    }
    slac: dict[str, Any] = {"pretrain_updates": 0, **arguments}
    for name, more in {
        "SLAC, batch 64": {},
        "SLAC, RL on all 8 positions": {"rl_positions": "all"},
        "SLAC, separate networks for deviations": {"policy_kwargs": {"separate_std": True}},
    }.items():
        models[name] = (SLAC("MlpPolicy", DummyVecEnv([Endless]), **{**slac, **more}), 64)
    actions = {}
    for name, (model, batch) in models.items():
        model.learn(1000)
        model.train(3, batch)
        actions[name] = lambda model=model, batch=batch: model.train(updates, batch)
    times = by_turns(actions, rounds)
    reference = np.array(next(iter(times.values())))
    for name, seconds in times.items():
        ratio = statistics.median(np.array(seconds) / reference)
        print(f"  {name:42s} {statistics.median(seconds) / updates * 1e3:7.2f} ms   x {ratio:.2f}")


if __name__ == "__main__":
    main()
