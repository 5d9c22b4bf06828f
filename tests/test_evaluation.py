"""Lockstep evaluation counts every episode once and disturbs nothing."""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import numpy as np
import torch as th
from stable_baselines3 import PPO

from rlexp.evaluation import Evaluator


class Countdown(gymnasium.Env[Any, Any]):
    """Episode length, return and metric follow from the seed alone, so that every mean is known."""

    observation_space = gymnasium.spaces.Box(0, 20, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = self.length = int(self.np_random.integers(1, 12))
        return np.array([self.left], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        done = self.left == 0
        info = {"is_success": self.length % 2 == 0, "size": self.length * 10} if done else {}
        return np.array([self.left], np.float32), 2.0, done, False, info


class Constant:
    """A policy that remembers how many rows it was asked for."""

    def predict(
        self, observation: Any, state: Any, episode_start: Any, deterministic: bool
    ) -> tuple[Any, Any]:
        assert episode_start.shape == (len(observation),)
        return np.zeros(len(observation), np.int64), state


def _expected(episodes: int, seed: int) -> np.ndarray[Any, Any]:
    seeds = np.random.SeedSequence(seed).generate_state(episodes).tolist()
    env = Countdown()
    return np.array([env.reset(seed=one)[0][0] for one in seeds])


def test_every_episode_counts_once_whatever_the_number_of_copies() -> None:
    lengths = _expected(37, seed=5)
    for n_envs in (1, 4, 37, 100):
        row = Evaluator(Countdown, 37, n_envs, 5, False, ("size",)).evaluate(Constant())
        assert row["n"] == 37
        assert row["length_mean"] == lengths.mean() and row["length_std"] == lengths.std()
        assert row["return_mean"] == 2 * lengths.mean()
        assert row["success_rate"] == (lengths % 2 == 0).mean()
        assert np.isclose(row["size_mean"], 10 * lengths.mean()) and np.isclose(
            row["size_std"], 10 * lengths.std()
        )


def test_the_same_episodes_every_time() -> None:
    evaluator = Evaluator(Countdown, 20, 6, 5, False)
    first, second = evaluator.evaluate(Constant()), evaluator.evaluate(Constant())
    assert {**first, "wall_s": 0} == {**second, "wall_s": 0}
    other = Evaluator(Countdown, 20, 6, 6, False).evaluate(Constant())
    assert other["length_mean"] != first["length_mean"]


def test_no_generator_is_disturbed() -> None:
    model = PPO("MlpPolicy", gymnasium.make("CartPole-v1"), n_steps=16, batch_size=8, seed=1)
    evaluator = Evaluator(lambda: gymnasium.make("CartPole-v1"), 10, 5, 3, deterministic=False)

    def draws() -> tuple[Any, ...]:
        return random.random(), np.random.random(), th.rand(1).item()

    model.set_random_seed(4)
    plain = draws()
    model.set_random_seed(4)
    evaluator.evaluate(model)
    assert draws() == plain


def test_sampled_actions_repeat() -> None:
    model = PPO("MlpPolicy", gymnasium.make("CartPole-v1"), n_steps=16, batch_size=8, seed=1)
    rows = [
        Evaluator(lambda: gymnasium.make("CartPole-v1"), 10, 5, 3, deterministic=False).evaluate(model)
        for _ in range(2)
    ]
    assert rows[0]["return_mean"] == rows[1]["return_mean"]
