"""Runs on the data centre through the real command: months, the first year, the test city, exact state."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rlexp.runs import folder as run_folder
from tests.conftest import Rlexp, environment, only_run

pytestmark = pytest.mark.usefixtures("engine_installed")

_ARGUMENTS = (
    "env=datacenter",
    "env.backend=surrogate",
    "env.days=32",
    "seed=3",
    "logger=none",
    "total_timesteps=3328",
)
_PPO = (*_ARGUMENTS, "algo=ppo", "algo.n_steps=128", "algo.n_epochs=1", "checkpoint.every_timesteps=256")


def _rows(path: Path) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in row.items() if key != "wall_s"} for row in run_folder.read_jsonl(path)
    ]


@pytest.mark.slow
def test_a_killed_run_ends_where_an_undisturbed_one_ends(rlexp: Rlexp, tmp_path: Path) -> None:
    assert rlexp(*_PPO, "output_dir=whole").returncode == 0
    whole = only_run(tmp_path / "whole")
    _check_years_and_months(whole)
    command = [sys.executable, "-m", "rlexp", *_PPO, "output_dir=killed"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        steps = [
            int(path.name.split("-")[0]) for path in tmp_path.glob("killed/runs/*/*/*/*/checkpoints/[0-9]*")
        ]
        if max(steps, default=0) >= 3072:  # the second year has begun
            break
        time.sleep(0.005)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    resumed = rlexp(*_PPO, "output_dir=killed")
    assert resumed.returncode == 0 and "resuming at step" in resumed.stdout
    killed = only_run(tmp_path / "killed")
    for name in (run_folder.TRACKED, run_folder.EVALUATIONS, run_folder.METRICS):
        kept = [_rows(folder / name) for folder in (whole, killed)]
        clocks = ("time/fps", "time/time_elapsed")
        plain = [[{k: v for k, v in row.items() if k not in clocks} for row in rows] for rows in kept]
        assert plain[0] == plain[1], name
    first = [run_folder.read_record(folder)["first_episode"] for folder in (whole, killed)]
    assert first[0] == first[1]


def _check_years_and_months(folder: Path) -> None:
    months = run_folder.read_jsonl(folder / run_folder.TRACKED)
    kept = [(row["year"], row["month"], row["timesteps"]) for row in months]
    assert kept == [(0, 1, 2976), (0, 2, 3072)]
    entry = run_folder.read_record(folder)
    year = entry["first_episode"]
    assert [part["month"] for part in year["periods"]] == [1, 2]
    parts = sum(days * part["power_kw"] for days, part in zip((31, 1), year["periods"], strict=True))
    assert year["power_kw"] == pytest.approx(parts / 32)
    evaluation = entry["evaluation"]
    assert evaluation["n"] == 1 and len(evaluation["periods"]) == 2 and evaluation["length_mean"] == 32 * 96
    assert evaluation["return_mean"] == pytest.approx(evaluation["step_reward_mean"] * 32 * 96)


def test_controllers_are_measured_on_the_first_year_and_the_test_city(rlexp: Rlexp, tmp_path: Path) -> None:
    arguments = ("env=datacenter", "env.backend=surrogate", "env.days=10", "logger=none", "algo=pi_fan")
    assert rlexp(*arguments, "env.weather=miami", "env.weather_noise=0").returncode == 0
    entry = run_folder.read_record(only_run(tmp_path))
    # January in Miami needs the chillers, in Helsinki it does not.
    assert entry["first_episode"]["power_kw"] > entry["evaluation"]["power_kw_mean"] + 5
    assert entry["evaluation"]["comfort_mean"] > 0.8


def test_bad_arguments(rlexp: Rlexp, tmp_path: Path) -> None:
    for argument, message in (
        ("env.weather=helsinky", "env.weather: 'helsinky' given, .* did you mean 'helsinki'"),
        ("env.evaluation_weather=nowhere.epw", "env.evaluation_weather: there is no file nowhere.epw"),
    ):
        result = rlexp("algo=ppo", "env=datacenter", argument)
        assert result.returncode == 2 and not list(tmp_path.iterdir())
        (line,) = result.stderr.splitlines()
        assert re.search(message, line), line
    rejected = rlexp("algo=builtin", "env=restaurant")
    assert rejected.returncode == 2 and "builtin is not compatible" in rejected.stderr
