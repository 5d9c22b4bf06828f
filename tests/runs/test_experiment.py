"""A run from start to finish, through the real command: kept, resumed, interrupted, failed, done anew."""

from __future__ import annotations

import io
import random
import signal
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch as th
from omegaconf import OmegaConf

from rlexp.cli import main
from rlexp.runs import folder as run_folder
from tests.conftest import CARTPOLE, environment, only_run
from tests.forked import Forked

_LONG = (
    *CARTPOLE,
    "total_timesteps=2048",
    "evaluation.every_timesteps=1000",
    "checkpoint.every_timesteps=128",
)
_DIALOGUES = (
    "env=restaurant",
    "seed=3",
    "total_episodes=null",
    "total_timesteps=900",
    "evaluation.every_timesteps=300",
    "evaluation.episodes=5",
    "logger=none",
    "checkpoint.every_timesteps=100",
)


def _rows(path: Path) -> list[dict[str, Any]]:
    """Rows without their clocks."""
    return [
        {key: value for key, value in row.items() if key != "wall_s"} for row in run_folder.read_jsonl(path)
    ]


def _weights(folder: Path) -> dict[str, Any]:
    with zipfile.ZipFile(folder / "model.zip") as archive:
        return {
            name: th.load(io.BytesIO(archive.read(name)), weights_only=True)
            for name in archive.namelist()
            if name.endswith(".pth") and "variables" not in name
        }


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return th.equal(one, other) if isinstance(one, th.Tensor) else bool(one == other)


def _start(cwd: Path, *arguments: str) -> Forked:
    return Forked(arguments, cwd, environment(), said=cwd / "said")


def _newest_checkpoint(cwd: Path) -> int:
    return max(
        (int(path.name.split("-")[0]) for path in cwd.glob("outputs/runs/*/*/*/seed=*/checkpoints/[0-9]*")),
        default=-1,
    )


def _wait_for_checkpoint(cwd: Path, newer_than: int = -1, timeout: float = 60) -> int:
    """Wait until a checkpoint newer than some step is complete; return its step."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if (newest := _newest_checkpoint(cwd)) > newer_than:
            return newest
        time.sleep(0.01)
    raise AssertionError("no checkpoint appeared")


def test_the_run_folder(rlexp, tmp_path: Path) -> None:
    result = rlexp(*CARTPOLE, "evaluation.every_timesteps=256")
    assert result.returncode == 0, result.stderr
    assert "finished: return" in result.stdout
    folder = only_run(tmp_path)
    entry = run_folder.read_record(folder)
    assert entry["status"] == "finished" and entry["timesteps"] == 512 and entry["error"] is None
    assert entry["evaluation"]["n"] == 2 and entry["seed"] == 0 and entry["choices"]["algo"] == "ppo"
    assert entry["wall_s"] > entry["train_s"] > 0
    evaluations = run_folder.read_jsonl(folder / run_folder.EVALUATIONS)
    assert [row["timesteps"] for row in evaluations] == [256, 512]
    metrics = run_folder.read_jsonl(folder / run_folder.METRICS)
    assert [row["timesteps"] for row in metrics] == list(range(64, 513, 64))
    assert all("episodes" in row for row in metrics) and "train/loss" in metrics[-1]
    assert (folder / "model.zip").is_file() and "n_steps: 64" in (folder / "config.yaml").read_text()


@pytest.mark.parametrize(
    ("algo", "options"),
    [
        ("ppo", ("algo.n_steps=64",)),
        ("a2c", ("algo.n_steps=8",)),
        ("sac", ("algo.learning_starts=20", "algo.net_arch=[16]")),
    ],
)
@pytest.mark.parametrize("total", [256, 300])
def test_the_recorded_evaluation_is_of_the_saved_weights(
    tmp_path: Path, algo: str, options: tuple[str, ...], total: int
) -> None:
    environment = ("env=gym", "env.id=Pendulum-v1", "tuned=none", "logger=none", "evaluation.episodes=2")
    budget = (
        f"total_timesteps={total}",
        f"evaluation.every_timesteps={total // 4}",
        "algo.learning_rate=0.01",
    )
    assert main([f"algo={algo}", *environment, *budget, *options, f"output_dir={tmp_path}"]) == 0
    folder = only_run(tmp_path)
    entry = run_folder.read_record(folder)
    rows = run_folder.read_jsonl(folder / run_folder.EVALUATIONS)
    assert entry["evaluation"] == rows[-1] and len({row["timesteps"] for row in rows}) == len(rows)
    assert main(["evaluate", str(folder)]) == 0
    (again,) = run_folder.read_jsonl(folder / "evaluated.jsonl")
    clocks = {"wall_s", "timesteps", "episodes", "updates"}
    assert {key: value for key, value in rows[-1].items() if key not in clocks} == {
        key: value for key, value in again.items() if key not in {*clocks, "overrides", "at"}
    }


def test_the_same_words_again(rlexp, tmp_path: Path) -> None:
    assert rlexp(*CARTPOLE).returncode == 0
    folder = only_run(tmp_path)
    before = (folder / "record.json").read_bytes()
    again = rlexp(*CARTPOLE)
    assert again.returncode == 0 and "already finished" in again.stdout and "force=true" in again.stdout
    assert (folder / "record.json").read_bytes() == before
    anew = rlexp(*CARTPOLE, "force=true")
    assert anew.returncode == 0 and "already finished" not in anew.stdout
    assert (folder / "record.json").read_bytes() != before
    assert only_run(tmp_path) == folder, "the run that was set aside is dropped when the new one has finished"


@pytest.mark.slow
def test_force_keeps_the_old_run_until_the_new_one_has_finished(rlexp, tmp_path: Path) -> None:
    assert rlexp(*_LONG).returncode == 0
    folder = only_run(tmp_path)
    process = _start(tmp_path, *_LONG, "force=true")
    while not list(folder.parent.glob("seed=0.previous-*")) or not folder.exists():
        time.sleep(0.01)
    _wait_for_checkpoint(tmp_path)
    process.kill()
    process.wait()
    (aside,) = folder.parent.glob("seed=0.previous-*")
    assert run_folder.read_record(aside)["status"] == "finished"
    assert rlexp(*_LONG).returncode == 0
    assert not list(folder.parent.glob("seed=0.previous-*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algo", "budget"), [("lcpo", ()), ("dqn", ("total_timesteps=null", "total_episodes=90"))]
)
def test_kill_and_resume_is_exact(tmp_path: Path, algo: str, budget: tuple[str, ...]) -> None:
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    for folder in (undisturbed, disturbed):
        folder.mkdir()
    arguments = (f"algo={algo}", *_DIALOGUES, *budget)
    assert _start(undisturbed, *arguments).wait() == 0
    seen = -1
    for _ in range(2):
        process = _start(disturbed, *arguments)
        _wait_for_checkpoint(disturbed, newer_than=seen)
        time.sleep(random.uniform(0, 0.2))  # any moment will do
        process.kill()
        process.wait()
        seen = _newest_checkpoint(disturbed)
    process = _start(disturbed, *arguments)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    one, other = only_run(undisturbed), only_run(disturbed)
    assert "resuming at step" in output and run_folder.read_record(other)["attempts"] == 3
    for name in (run_folder.EVALUATIONS, run_folder.METRICS):
        assert _rows(one / name) == _rows(other / name)
    assert _same(_weights(one), _weights(other))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_interrupted_in_order(rlexp, tmp_path: Path, number: int, code: int) -> None:
    arguments = (*_LONG, "total_timesteps=100000")
    process = _start(tmp_path, *arguments)
    _wait_for_checkpoint(tmp_path)
    process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == code, output
    assert (
        "interrupted; resume with the same command, or: rlexp resume outputs" in output
        and "Traceback" not in output
    )
    name = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"
    assert f"rlexp: {name}: stopping after the current rollout, at step" in output
    folder = only_run(tmp_path)
    entry = run_folder.read_record(folder)
    assert entry["status"] == "interrupted"
    newest = max(int(path.name.split("-")[0]) for path in (folder / "checkpoints").iterdir())
    assert newest == run_folder.read_jsonl(folder / run_folder.METRICS)[-1]["timesteps"], (
        "state saved at the last rollout boundary"
    )


def test_a_failing_run_is_recorded(rlexp, tmp_path: Path) -> None:
    (tmp_path / "broken_env.py").write_text(
        "import gymnasium\n"
        "class Broken(gymnasium.Env):\n"
        "    observation_space = gymnasium.spaces.Box(0, 1, (2,))\n"
        "    action_space = gymnasium.spaces.Discrete(2)\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n"
        "        return self.observation_space.low, {}\n"
        "    def step(self, action):\n"
        "        raise RuntimeError('the simulator crashed')\n"
        "gymnasium.register('Broken-v0', entry_point=Broken, disable_env_checker=True)\n"
    )
    arguments = ("algo=ppo", "env=gym", "env.id=broken_env:Broken-v0", "total_timesteps=100", "logger=none")
    result = rlexp(*arguments, env={"PYTHONPATH": str(tmp_path)})
    assert result.returncode == 1
    assert "the simulator crashed" in result.stderr and "Traceback" not in result.stderr
    entry = run_folder.read_record(only_run(tmp_path))
    assert entry["status"] == "failed" and "simulator crashed" in entry["error"]
    assert "Traceback" in entry["traceback"]


def test_not_a_number_stops_the_run(rlexp, tmp_path: Path) -> None:
    result = rlexp(*CARTPOLE, "algo.learning_rate=1e30", "algo.max_grad_norm=null")
    assert result.returncode == 1
    assert "NonFiniteError" in result.stderr or "nan" in result.stderr.lower()
    assert "step" in run_folder.read_record(only_run(tmp_path))["error"] or "nan" in result.stderr.lower()


def test_another_process_is_working_on_it(rlexp, tmp_path: Path) -> None:
    arguments = (*_LONG, "total_timesteps=100000")
    process = _start(tmp_path, *arguments)
    _wait_for_checkpoint(tmp_path)
    second = rlexp(*arguments)
    process.kill()
    process.wait()
    assert second.returncode == 2 and "another process" in second.stderr


def test_many_runs_with_one_that_fails(rlexp, tmp_path: Path) -> None:
    result = rlexp("-m", *CARTPOLE, "algo.learning_rate=1e30,3e-4", "algo.max_grad_norm=null", "seed=0-1")
    assert result.returncode == 1
    statuses = sorted(
        run_folder.read_record(path)["status"] for path in tmp_path.glob("outputs/runs/*/*/*/seed=*")
    )
    assert statuses == ["failed", "failed", "finished", "finished"]
    assert "2 of 4 runs finished" in result.stdout
    (listed,) = tmp_path.glob("outputs/multirun/*/runs.jsonl")
    assert len(run_folder.read_jsonl(listed)) == 4


def test_episode_budget_is_exact(rlexp, tmp_path: Path) -> None:
    assert rlexp(*CARTPOLE, "total_timesteps=null", "total_episodes=7").returncode == 0
    assert run_folder.read_record(only_run(tmp_path))["episodes"] == 7


def test_without_a_step_budget_exploration_follows_the_episodes(rlexp, tmp_path: Path) -> None:
    arguments = (
        "algo=dqn",
        "env=gym",
        "env.id=CartPole-v1",
        "tuned=none",
        "total_episodes=40",
        "algo.exploration_fraction=0.5",
    )
    assert rlexp(*arguments, "evaluation.episodes=0", "logger=none").returncode == 0
    rows = _rows(only_run(tmp_path) / run_folder.METRICS)
    rates = {row["episodes"]: row["rollout/exploration_rate"] for row in rows}
    # From 1 to .05 over 20 episodes; a row is written at the end of an episode, before that one counts.
    assert all(abs(rate - max(1 - 0.95 * (n - 1) / 20, 0.05)) < 0.06 for n, rate in rates.items()), rates
    assert min(rates.values()) == pytest.approx(0.05)


def test_evaluate_again(rlexp, tmp_path: Path) -> None:
    assert rlexp(*CARTPOLE).returncode == 0
    folder = only_run(tmp_path)
    result = rlexp("evaluate", str(folder), "evaluation.episodes=3")
    assert result.returncode == 0, result.stderr
    (row,) = run_folder.read_jsonl(folder / "evaluated.jsonl")
    assert row["n"] == 3
    assert OmegaConf.load(folder / run_folder.CONFIG).evaluation.episodes == 2, "the run's own config stays"
    assert rlexp("evaluate", str(folder), "evaluation.episode=3").returncode == 2
