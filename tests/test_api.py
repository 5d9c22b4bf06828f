"""Runs from Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rlexp
from rlexp.cli import main
from rlexp.errors import RunFailed, UsageError

_TINY = ("algo=ppo", "env=CartPole-v1", "tuned=none", "algo.n_steps=32", "algo.batch_size=16", "logger=none")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(here: Path):
    return rlexp.train(*_TINY, total_timesteps=64, **{"evaluation.episodes": 2})


def test_a_run_is_trained_as_the_command_line_does(
    run: rlexp.LoadedRun, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run.record["status"] == "finished" and run.config.total_timesteps == 64
    capfd.readouterr()
    assert main([*_TINY, "total_timesteps=64", "evaluation.episodes=2"]) == 0
    assert "already finished" in capfd.readouterr().out
    again = rlexp.train(*_TINY, total_timesteps=64, **{"evaluation.episodes": 2})
    assert again.folder == run.folder and again.record == run.record


def test_the_model_and_the_environment_are_those_of_the_final_evaluation(run: rlexp.LoadedRun) -> None:
    from rlexp.runs.factories import make_evaluator

    evaluator = make_evaluator(run.config)
    row = evaluator.evaluate(run.model)
    assert row["return_mean"] == run.record["evaluation"]["return_mean"]
    model, env = rlexp.load_run(run.folder)
    observation, _ = env.reset(seed=0)
    action, _ = model.predict(observation, deterministic=True)
    assert env.action_space.contains(action) or env.action_space.contains(int(action))
    assert np.isfinite(env.step(action)[1])


def test_the_environment_has_the_settings_of_evaluations(here: Path) -> None:
    run = rlexp.train(
        "algo=random", "env=restaurant", total_episodes=1, logger="none", **{"evaluation.episodes": 1}
    )
    assert run.env.action_space.n == 14  # as the policy's; the bare environment has 16


def test_weights_of_another_task_are_rejected(run: rlexp.LoadedRun) -> None:
    other = rlexp.train(
        *_TINY[:1], "env=Acrobot-v1", *_TINY[2:], total_timesteps=64, **{"evaluation.episodes": 1}
    )
    (run.folder / "model.zip").write_bytes((other.folder / "model.zip").read_bytes())
    with pytest.raises(UsageError, match=r"another observation space: Box\(\[6\]\), not Box\(\[4\]\)"):
        rlexp.load_run(run.folder)


def test_what_cannot_be_read_or_trained(here: Path) -> None:
    with pytest.raises(UsageError, match="no run here"):
        rlexp.load_run(here)
    with pytest.raises(rlexp.UsageError, match="learning_rate"):
        rlexp.train("algo=ppo", "env=CartPole-v1", lr=1e-3)
    with pytest.raises(UsageError, match="key=value"):
        rlexp.train("lcpo")
    assert list(here.iterdir()) == []


def test_a_run_that_fails_raises(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stable_baselines3 import PPO

    def fail(self: PPO) -> None:
        raise OSError("no room")

    monkeypatch.setattr(PPO, "train", fail)
    with pytest.raises(RunFailed, match="no room"):
        rlexp.train(*_TINY, total_timesteps=64)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1e-3, "0.001"),
        ("a b", "'a b'"),
        ("it's", r"'it\'s'"),
        ([1, "x,y"], "[1,'x,y']"),
        ({"pi": [8]}, "{pi:[8]}"),
        ("lcpo", "lcpo"),
    ],
)
def test_values_become_overrides(value: object, text: str) -> None:
    from rlexp.api import _text

    assert _text(value) == text


def test_names_are_listed_without_importing_what_they_name() -> None:
    probe = "import sys, rlexp; assert {'LCPO', 'train', 'load_run'} <= set(dir(rlexp)); "
    probe += "sys.exit(any(name in sys.modules for name in ('torch', 'gymnasium')))"
    assert subprocess.run([sys.executable, "-c", probe]).returncode == 0


def test_gymnasium_makes_our_environments() -> None:
    """Gymnasium 1 loads no plug-ins: the module stands in the id."""
    probe = "import gymnasium; print(gymnasium.make('rlexp:rlexp/Restaurant-v0').action_space)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert "Discrete(14)" in done.stdout, done.stderr
