"""Lockstep evaluation counts every episode once and disturbs nothing."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from stable_baselines3 import PPO

from rlexp import DQN, R2D2
from rlexp.algos.controllers.controllers import RandomPolicy
from rlexp.demonstrations.lockstep import isolated_random_state
from rlexp.errors import UsageError
from rlexp.runs.evaluation import Evaluator, load_policy


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


def cartpole() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("CartPole-v1")


LEARNERS: dict[str, Callable[[], Any]] = {
    "ppo": lambda: PPO("MlpPolicy", cartpole(), n_steps=16, batch_size=8, seed=1),
    "dqn": lambda: DQN("MlpPolicy", cartpole(), seed=1),
    "r2d2": lambda: R2D2("MlpPolicy", cartpole(), seed=1),
    "random": lambda: RandomPolicy("MlpPolicy", cartpole(), seed=1),
}


@pytest.fixture(params=sorted(LEARNERS))
def learner(request: pytest.FixtureRequest) -> Any:
    """An untrained one, which explores at half of its steps where it explores at all."""
    model = LEARNERS[request.param]()
    model.exploration_rate = 0.5
    model.own = np.random.default_rng(1)
    return model


def states(model: Any) -> tuple[Any, ...]:
    return (
        random.getstate(),
        str(np.random.get_state()),
        th.get_rng_state().tolist(),
        str(model.action_space.np_random.bit_generator.state),
        str(model.own.bit_generator.state),
    )


@pytest.mark.parametrize("deterministic", [True, False])
def test_no_generator_of_training_is_drawn_from(learner: Any, deterministic: bool) -> None:
    before = states(learner)
    Evaluator(cartpole, 10, 5, 3, deterministic).evaluate(learner)
    assert states(learner) == before


def test_sampled_actions_repeat_wherever_training_has_come_to(learner: Any) -> None:
    evaluator = Evaluator(cartpole, 10, 5, 3, deterministic=False)
    first = evaluator.evaluate(learner)
    learner.action_space.seed(7)
    np.random.seed(7)
    th.manual_seed(7)
    second = evaluator.evaluate(learner)
    assert {**first, "wall_s": 0} == {**second, "wall_s": 0}


def test_an_error_puts_the_generators_back() -> None:
    model = LEARNERS["dqn"]()
    model.own = np.random.default_rng(1)
    before = states(model)
    with pytest.raises(KeyError), isolated_random_state(5, model):
        model.action_space.sample()
        model.own.random()
        raise KeyError
    assert states(model) == before


@pytest.mark.parametrize("name", ["dqn", "r2d2"])
def test_a_loaded_policy_explores_as_the_saved_one(name: str, tmp_path: Path) -> None:
    model = LEARNERS[name]()
    model.exploration_rate = 0.37
    model.save(tmp_path / "model.zip")
    other = LEARNERS[name]()
    load_policy(other, tmp_path / "model.zip", "cpu")
    assert other.exploration_rate == 0.37
    assert all(
        th.equal(a, b) for a, b in zip(other.policy.parameters(), model.policy.parameters(), strict=True)
    )


@pytest.mark.parametrize("given", [None, ":serialized:", {"a": 1}])
def test_an_archive_without_its_exploration_rate_is_damaged(given: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.zip"
    model = LEARNERS["dqn"]()
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    data = {**json.loads(members["data"]), "exploration_rate": given}
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in (members | {"data": json.dumps(data).encode()}).items():
            archive.writestr(member, content)
    with pytest.raises(UsageError, match="exploration_rate"):
        load_policy(model, path, "cpu")


def test_an_episode_that_does_not_end_is_an_error() -> None:
    class Endless(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
            return np.zeros(1, np.float32), {}

        def step(self, _: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return np.zeros(1, np.float32), 0.0, False, False, {}

    class Model:
        def predict(self, observation: Any, **_: Any) -> tuple[Any, None]:
            return np.zeros(len(observation), int), None

    evaluator = Evaluator(Endless, 1, 1, 0, True, max_episode_steps=100)
    with pytest.raises(RuntimeError, match=r"not ended after 100 steps.*max_episode_steps"):
        evaluator.evaluate(Model())
