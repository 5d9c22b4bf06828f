"""Runs whose environment raises or returns nonsense: failed, with the environment's own error, nothing bad stored."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlexp import cli
from rlexp.envs.common import subprocess_vec_env
from rlexp.envs.common.subprocess_vec_env import SubprocessVecEnv
from rlexp.runs import folder as run_folder
from rlexp.runs.checkpoint import ARRAYS, available
from tests.conftest import only_run
from tests.faulty import Faulty

_RUN = (
    "env=gym",
    "env.id=tests.faulty:Faulty-v0",
    "total_timesteps=60",
    "logger=none",
    "evaluation.episodes=0",
    "checkpoint.every_timesteps=10",
)
_PPO = ("algo=ppo", "algo.n_steps=10", "algo.batch_size=10", "algo.n_epochs=1", "algo.net_arch=[4]")
_DQN = (
    "algo=dqn",
    "algo.learning_starts=5",
    "algo.batch_size=4",
    "algo.buffer_size=100",
    "algo.net_arch=[4]",
)
_SAC = (
    "algo=sac",
    "algo.learning_starts=5",
    "algo.batch_size=4",
    "algo.buffer_size=100",
    "algo.net_arch=[4]",
)
_ALGOS = {"ppo": _PPO, "dqn": _DQN, "sac": (*_SAC, "+env.kwargs.continuous=true")}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Faulty.built = Faulty.begun = 0
    return tmp_path


def _failed(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What the record of the only run says, after a run that must have failed properly."""
    reported = capsys.readouterr().err.strip().splitlines()
    assert len(reported) == 2 and reported[0].startswith("failed: ") and "record.json" in reported[1], (
        reported
    )
    entry = run_folder.read_record(only_run(folder))
    assert entry["status"] == "failed" and entry["error"] in reported[0]
    assert "Traceback" in entry["traceback"]
    return entry


@pytest.mark.parametrize(
    ("algo", "vec_env"), [("ppo", "dummy"), ("dqn", "dummy"), ("sac", "dummy"), ("dqn", "subproc")]
)
def test_a_bad_row_is_never_stored_and_the_mended_run_resumes(
    here: Path, capsys: pytest.CaptureFixture[str], algo: str, vec_env: str
) -> None:
    arguments = (
        *_ALGOS[algo],
        *_RUN,
        f"hardware.vec_env={vec_env}",
        "hardware.n_envs=2",
        "algo.batch_size=4",
    )
    faulty = ["+env.kwargs.fault=nan reward", "+env.kwargs.at=17", "+env.kwargs.mended=mended"]
    if vec_env == "dummy":
        faulty.append("+env.kwargs.only=1")
    assert cli.main([*arguments, *faulty]) == 1
    entry = _failed(here, capsys)
    assert entry["error"].startswith("InvalidEnvOutput: environment ")
    assert "step 17 (step 7 of its episode): reward: nan (float) returned" in entry["error"]
    checkpoints = available(only_run(here) / run_folder.CHECKPOINTS)
    assert checkpoints, "the run must have somewhere to resume from"
    for checkpoint in checkpoints:
        with np.load(checkpoint / ARRAYS, allow_pickle=False) as arrays:
            for name in arrays.files:
                assert arrays[name].dtype.kind not in "fc" or np.isfinite(arrays[name]).all(), name
    (here / "mended").touch()
    assert cli.main([*arguments, *faulty]) == 0
    assert "resuming at step" in capsys.readouterr().out
    assert run_folder.read_record(only_run(here))["status"] == "finished"


@pytest.mark.parametrize(
    ("fault", "at", "vec_env", "error", "note"),
    [
        ("raise", 5, "dummy", "ArithmeticError: the pole went through the floor", "step 5 (step 5 of"),
        ("raise", 5, "subproc", "ArithmeticError: the pole went through the floor", "step 5 (step 5 of"),
        ("sys.exit", 5, "dummy", "SystemExit: 3", "step 5 (step 5 of"),
        ("raise odd", 0, "dummy", "OddError: no door between kitchen and hall", "step 0 (in reset)"),
        ("raise odd", 0, "subproc", "OddError: no door between kitchen and hall", "step 0 (in reset)"),
        ("close raise", 0, "dummy", "OSError: the simulator's socket is gone", "in close"),
        ("close raise", 0, "subproc", "OSError: the simulator's socket is gone", "in close"),
        ("observation None", 0, "dummy", "InvalidEnvOutput: ", "observation: None returned"),
    ],
)
def test_the_record_holds_the_environments_own_error(
    here: Path, capsys: pytest.CaptureFixture[str], fault: str, at: int, vec_env: str, error: str, note: str
) -> None:
    arguments = (f"+env.kwargs.fault={fault}", f"+env.kwargs.at={at}", f"hardware.vec_env={vec_env}")
    assert cli.main([*_PPO, *_RUN, *arguments, "total_timesteps=20"]) == 1
    entry = _failed(here, capsys)
    assert error in entry["error"] and note in entry["error"]
    assert "environment 0 (tests.faulty:Faulty-v0)" in entry["error"]
    place = {"raise": "_end_if_due", "close raise": "close", "observation None": "reset"}
    assert f"in {place.get(fault, '_end_if_due')}" in entry["traceback"]
    assert "EOFError" not in entry["traceback"]


def test_a_process_that_ends_without_a_word(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*_PPO, *_RUN, "hardware.vec_env=subproc", "+env.kwargs.fault=kill"]) == 1
    assert "environment 0: its process was ended by SIGKILL" in _failed(here, capsys)["error"]


@pytest.mark.parametrize(
    ("arguments", "key", "error"),
    [
        ("+env.kwargs.at_build=0", "env.id: ", "no licence for the simulator"),
        ("+env.kwargs.fault=close raise unused", "env=gym: ", "the simulator's socket is gone"),
    ],
)
def test_an_environment_that_cannot_be_built_or_closed(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: str, key: str, error: str
) -> None:
    assert cli.main([*_PPO, *_RUN, arguments]) == 2
    reported = capsys.readouterr().err
    assert key in reported and error in reported
    assert len(reported.strip().splitlines()) == 1 and list(here.iterdir()) == []


@pytest.mark.parametrize("fault", ["nan reward", "nan observation", "raise", "info None", "nan is_success"])
def test_evaluation(here: Path, capsys: pytest.CaptureFixture[str], fault: str) -> None:
    arguments = (
        "evaluation.episodes=3",
        f"+env.kwargs.fault={fault}",
        "+env.kwargs.only=1",
        "+env.kwargs.at=3",
    )
    assert cli.main([*_PPO, *_RUN, *arguments]) == 1
    entry = _failed(here, capsys)
    assert "evaluation environment 0 (tests.faulty:Faulty-v0), step 3" in entry["error"]
    assert "JSON" not in entry["error"]
    for row in run_folder.read_jsonl(only_run(here) / run_folder.EVALUATIONS):
        json.dumps(row, allow_nan=False)


def test_processes_that_hang_or_cannot_be_built(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess_vec_env, "_PATIENCE", 0.5)

    def hangs() -> Faulty:
        os.chdir(here)  # the server that processes are forked from stays where it was started
        return Faulty("hang", at=1)

    envs = SubprocessVecEnv([hangs, lambda: Faulty("raise", at=1)])
    envs.reset()
    envs.step_async(np.array([0, 0]))
    since = time.monotonic()
    envs.close()
    assert time.monotonic() - since < 5
    assert not any(process.is_alive() for process in envs.processes)
    with pytest.raises(RuntimeError, match="no licence") as caught:
        SubprocessVecEnv([lambda: Faulty(at_build="0")])
    assert "in __init__" in str(caught.value.__cause__)
