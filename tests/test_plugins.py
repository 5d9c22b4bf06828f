"""A package from outside brings an algorithm and an environment; nothing of rlexp is touched."""

from __future__ import annotations

import configparser
import os
import tomllib
from pathlib import Path

from rlexp.runs import folder as run_folder
from tests.conftest import only_run

_HERE = Path(__file__).parent
# The example as it is in the repository, and beside it what `pip install` would write of its entry points.
_EXAMPLE = _HERE.parent / "examples" / "plugin"
_PLUGIN = {"PYTHONPATH": f"{_EXAMPLE}{os.pathsep}{_HERE / 'plugin'}"}
_ARGUMENTS = ("algo=slow_ppo", "env=bandit", "total_timesteps=1024", "logger=none", "evaluation.episodes=20")


def test_listed(rlexp) -> None:
    shown = rlexp("list", env=_PLUGIN).stdout
    assert "PPO that counts its updates" in shown and "Two arms, one pays" in shown
    assert "slow_ppo" not in rlexp("list").stdout


def test_trained(rlexp, tmp_path: Path) -> None:
    result = rlexp(*_ARGUMENTS, env=_PLUGIN)
    assert result.returncode == 0, result.stderr
    entry = run_folder.read_record(only_run(tmp_path))
    assert entry["evaluation"]["success_rate"] == 1.0 and entry["evaluation"]["arm_mean"] == 1.0
    assert run_folder.read_jsonl(only_run(tmp_path) / run_folder.METRICS)[-1]["train/patience"] == 3 * 31


def test_checked_like_our_own(rlexp, tmp_path: Path) -> None:
    misspelt = rlexp(*_ARGUMENTS, "algo.patiens=2", env=_PLUGIN)
    assert misspelt.returncode == 2 and "did you mean 'algo.patience'?" in misspelt.stderr
    incompatibility = rlexp(*_ARGUMENTS, "algo=sac", env=_PLUGIN)
    assert incompatibility.returncode == 2 and "slow_ppo" in incompatibility.stderr


def test_its_pyproject_names_the_same_entry_points() -> None:
    project = tomllib.loads((_EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = configparser.ConfigParser()
    installed.read(_HERE / "plugin" / "bandit_plugin-1.0.dist-info" / "entry_points.txt", encoding="utf-8")
    assert project["entry-points"] == {name: dict(installed[name]) for name in installed.sections()}
