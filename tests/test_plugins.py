"""A package from outside brings an algorithm and an environment; nothing of rlexp is touched."""

from __future__ import annotations

from pathlib import Path

from rlexp.runs import folder as run_folder
from tests.conftest import only_run

_PLUGIN = {"PYTHONPATH": str(Path(__file__).parent / "plugin")}
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
