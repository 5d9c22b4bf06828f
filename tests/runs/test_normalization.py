"""Normalised observations and rewards, state-dependent noise, falling learning rates: trained, resumed, read back."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rlexp
from rlexp import registry, testing
from rlexp.cli import main
from rlexp.config import paths
from rlexp.config.compose import compose
from rlexp.errors import UsageError
from rlexp.runs import extend
from rlexp.runs.factories import make_evaluator, make_model, make_training_env
from rlexp.testing import cases, runs

_NORMALIZED = ("normalize.observations=true", "normalize.rewards=true")
_SDE = {"use_sde": True, "sde_sample_freq": 3, "log_std_init": -1.0}
_PPO = (
    "algo=ppo",
    "tuned=none",
    "algo.n_steps=32",
    "algo.batch_size=16",
    "logger=none",
    "evaluation.episodes=2",
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _case(algo: str, actions: str, **settings: Any) -> testing.Case:
    case = next(
        one for one in cases.of(registry.algo(algo)) if (one.actions, one.observations) == (actions, "vector")
    )
    return dataclasses.replace(case, settings={**case.settings, **settings})


@pytest.mark.parametrize(
    ("case", "overrides"),
    [
        (_case("ppo", "continuous", n_steps=4, **_SDE), (*_NORMALIZED, "hardware.n_envs=2")),
        (_case("recurrent_ppo", "discrete", learning_rate_schedule="linear"), _NORMALIZED),
        (_case("dqn", "discrete"), _NORMALIZED),
        (_case("sac", "continuous", use_sde=True), ("normalize.observations=true",)),
        (_case("a2c", "continuous", use_sde=True), ()),  # the noise of a rollout lasts until its end
    ],
    ids=("ppo", "recurrent_ppo", "dqn", "sac", "a2c"),
)
def test_a_run_resumes_bit_for_bit(case: testing.Case, overrides: tuple[str, ...]) -> None:
    runs.resumes_as_a_run(case, *overrides)


def test_a_run_is_read_back_with_the_statistics_with_which_it_ended(here: Path) -> None:
    run = rlexp.train(*_PPO, *_NORMALIZED, "env=MountainCar-v0", total_timesteps=64)
    saved = json.loads((run.folder / "normalization.json").read_text())
    assert saved["observations"]["count"] == pytest.approx(65, abs=0.01)  # 64 steps and the first observation
    row = make_evaluator(run.config).evaluate(run.model)
    assert row["return_mean"] == run.record["evaluation"]["return_mean"] == -200.0, (
        "rewards are the environment's own"
    )
    position = run.env.unwrapped.reset(seed=5)[0]
    mean, variance = (np.array(saved["observations"][key]) for key in ("mean", "variance"))
    expected = np.clip((position - mean) / np.sqrt(variance + 1e-8), -10, 10).astype(np.float32)
    observation, _ = run.env.reset(seed=5)
    assert np.array_equal(observation, expected) and run.env.observation_space.contains(observation)
    assert run.env.step(0)[1] == -1.0
    assert main(["evaluate", str(run.folder)]) == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "missing"),
        ("[1]", "it needs rewards and observations"),
        ('{"rewards": {}, "observations": {}}', "rewards.mean"),
        ('{"rewards": {"mean": 0, "variance": NaN, "count": 1}, "observations": {}}', "rewards.variance"),
        ('{"rewards": {"mean": 0, "variance": -1, "count": 1}, "observations": {}}', "rewards.variance"),
        ("[" * 9999, "RecursionError"),
    ],
)
def test_damaged_statistics_are_named(here: Path, content: str | None, reason: str) -> None:
    from rlexp.runs import normalization

    env = make_training_env(compose([*_PPO, *_NORMALIZED, "env=MountainCar-v0", "total_timesteps=9"]))
    if content is not None:
        (here / normalization.FILE).write_text(content)
    with pytest.raises(UsageError, match=reason):
        normalization.load(env, here)


def test_a_warm_start_takes_the_statistics_too(here: Path) -> None:
    first = rlexp.train(*_PPO, *_NORMALIZED, "env=MountainCar-v0", total_timesteps=64)
    start = f"init_from={first.folder}"
    second = rlexp.train(*_PPO, *_NORMALIZED, "env=MountainCar-v0", start, total_timesteps=96)
    count = json.loads((second.folder / "normalization.json").read_text())["observations"]["count"]
    assert count == pytest.approx(65 + 97, abs=0.01)
    with pytest.raises(UsageError, match="trained on normalised observations"):
        rlexp.train(*_PPO, "env=MountainCar-v0", start, total_timesteps=96)


@pytest.mark.parametrize(
    ("overrides", "answer"),
    [
        (("algo=r2d2", "env=CartPole-v1", "normalize.rewards=true"), "algo=r2d2 does not"),
        (("algo=random", "env=CartPole-v1", "normalize.rewards=true"), "algo=random does not"),
        (("algo=ppo", "env=FrozenLake-v1", "normalize.observations=true"), "vectors"),
        (("algo=ppo", "env=CartPole-v1", "algo.use_sde=true"), "algo.use_sde=true: cannot be built"),
    ],
)
def test_what_cannot_be_normalised_is_refused(
    here: Path, overrides: tuple[str, ...], answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*overrides, "tuned=none", "total_timesteps=64", "logger=none"]) == 2
    assert answer in capsys.readouterr().err and not list(here.iterdir())


def test_a_run_that_leaves_the_new_settings_alone_keeps_its_folder() -> None:
    cfg = compose(["algo=ppo", "env=Pendulum-v1", "tuned=none", "total_timesteps=9"])
    learned = paths.learning(cfg)
    assert "normalize" not in learned
    assert (
        not {"use_sde", "sde_sample_freq", "log_std_init", "learning_rate_schedule"} & learned["algo"].keys()
    )
    for key in ("normalize.rewards=true", "algo.use_sde=true", "algo.clip_range_schedule=linear"):
        changed = compose(["algo=ppo", "env=Pendulum-v1", "tuned=none", "total_timesteps=9", key])
        assert paths.variant(changed) != paths.variant(cfg), key


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ("algo.learning_rate_schedule=linear", "its learning rate falls over the budget"),
        ("algo.clip_range_schedule=linear", "its clip range falls over the budget"),
        ("normalize.rewards=true", None),
    ],
)
def test_what_falls_over_the_budget_cannot_be_extended(override: str, reason: str | None) -> None:
    cfg = compose(["algo=ppo", "env=Pendulum-v1", "tuned=none", "total_timesteps=9", override])
    found = extend.obstacle(cfg)
    assert found is None if reason is None else reason in str(found)


def test_a_linear_schedule_ends_at_zero() -> None:
    cfg = compose([*_PPO, "env=CartPole-v1", "total_timesteps=9", "algo.learning_rate_schedule=linear",
                   "algo.learning_rate=0.5", "algo.clip_range_schedule=linear"])  # fmt: skip
    env = make_training_env(cfg)
    model = make_model(cfg, env)
    env.close()
    assert [model.lr_schedule(left) for left in (1.0, 0.5, 0.0)] == [0.5, 0.25, 0.0]
    assert [model.clip_range(left) for left in (1.0, 0.5, 0.0)] == [0.2, 0.1, 0.0]
