"""Whatever happens to a file of a stopped run: it resumes exactly or says why not; it never gives other numbers."""

from __future__ import annotations

import io
import json
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch as th
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from omegaconf import DictConfig
from rich.console import Console
from stable_baselines3 import PPO

from rlexp.config.compose import compose
from rlexp.errors import RunFailed, UsageError
from rlexp.runs import checkpoint
from rlexp.runs import folder as run_folder
from rlexp.runs.callbacks import Budget
from rlexp.runs.experiment import Experiment
from rlexp.runs.train import train

_ARGUMENTS = (
    "algo=ppo",
    "env=gym",
    "env.id=CartPole-v1",
    "tuned=none",
    "algo.n_steps=16",
    "algo.batch_size=16",
    "algo.n_epochs=1",
    "total_timesteps=112",
    "evaluation.episodes=1",
    "evaluation.every_timesteps=16",
    "checkpoint.every_timesteps=16",
    "logger=none",
)
_CLOCKS = ("wall_s", "time/fps", "time/time_elapsed", "time/iterations")


class _Killed(BaseException):
    """Stands for SIGKILL: nobody catches it."""


def _run(cfg: DictConfig, folder: Path) -> list[str]:
    """Run to the end; return the lines that are shown."""
    folder.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    console = Console(file=text, width=10_000)
    Experiment(cfg, folder, {"overrides": [], "choices": {}}, console).run()
    return text.getvalue().splitlines()


def _results(folder: Path) -> dict[str, Any]:
    def rows(name: str) -> list[dict[str, Any]]:
        return [
            {key: value for key, value in row.items() if key not in _CLOCKS}
            for row in run_folder.read_jsonl(folder / name)
        ]

    weights = PPO.load(folder / "model.zip", device="cpu").policy.state_dict()
    return {
        "weights": {name: value.tolist() for name, value in weights.items()},
        "metrics": rows(run_folder.METRICS),
        "evaluations": rows(run_folder.EVALUATIONS),
    }


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[DictConfig, Path, dict[str, Any]]:
    """The config, a run that was killed with two checkpoints, and the results of one that was not."""
    th.set_num_threads(1)
    root = tmp_path_factory.mktemp("stopped")
    cfg = compose([*_ARGUMENTS, f"output_dir={root}"])
    _run(cfg, root / "plain")
    usual = Budget._on_step

    def on_step(budget: Budget) -> bool:
        if budget.num_timesteps >= 90:
            raise _Killed
        return usual(budget)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(_Killed):
        patch.setattr(Budget, "_on_step", on_step)
        _run(cfg, root / "killed")
    assert len(checkpoint.available(root / "killed" / run_folder.CHECKPOINTS)) == 2
    return cfg, root / "killed", _results(root / "plain")


def _resumes_or_says_why_not(
    stopped: tuple[DictConfig, Path, dict[str, Any]], folder: Path, damage: Callable[[Path], object]
) -> list[str]:
    """Damage a copy of the run and resume it; return what was said."""
    cfg, killed, expected = stopped
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(killed, folder)
    rows = (folder / run_folder.METRICS).read_bytes()
    damage(folder)
    try:
        said = _run(cfg, folder)
    except UsageError as error:
        assert "\n" not in str(error)
        assert "cannot resume" in str(error)
        assert len(checkpoint.available(folder / run_folder.CHECKPOINTS)) == 2, "nothing is lost by saying no"
        return [str(error)]
    assert _results(folder) == expected
    del rows
    return said


def _newest(folder: Path, name: str) -> Path:
    return checkpoint.available(folder / run_folder.CHECKPOINTS)[0] / name


def _flip_digit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    places = [place for place, byte in enumerate(content) if chr(byte).isdigit()]
    place = places[len(places) // 2]
    content[place] = ord("7") if content[place] != ord("7") else ord("3")
    path.write_bytes(bytes(content))


def _lose_a_key(path: Path) -> None:
    tree = json.loads(path.read_text())
    tree.pop(next(iter(tree)))
    path.write_text(json.dumps(tree))


_DAMAGES: dict[str, Callable[[Path], object]] = {
    "digit": _flip_digit,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "list": lambda path: path.write_text("[]"),
    "null": lambda path: path.write_text("null"),
    "missing": Path.unlink,
}


@pytest.mark.parametrize("damage", [*_DAMAGES, "key"])
@pytest.mark.parametrize("name", ["state.json", "arrays.npz", "manifest.json"])
def test_a_damaged_checkpoint(stopped: Any, tmp_path: Path, name: str, damage: str) -> None:
    if damage == "key" and name == "arrays.npz":
        pytest.skip("has no keys")
    change = {**_DAMAGES, "key": _lose_a_key}[damage]
    said = _resumes_or_says_why_not(stopped, tmp_path / "run", lambda run: change(_newest(run, name)))
    assert sum("falling back to" in line for line in said) == 1, said


@pytest.mark.parametrize("damage", _DAMAGES)
@pytest.mark.parametrize("name", [run_folder.METRICS, run_folder.EVALUATIONS])
def test_damaged_rows(stopped: Any, tmp_path: Path, name: str, damage: str) -> None:
    """Rows that both checkpoints continue are damaged."""
    said = _resumes_or_says_why_not(stopped, tmp_path / "run", lambda run: _DAMAGES[damage](run / name))
    assert len(said) == 1 and name in said[0], said


def test_rows_of_the_newest_checkpoint_alone(stopped: Any, tmp_path: Path) -> None:
    """What only the newest checkpoint continues is lost: the older one takes over."""

    def damage(run: Path) -> None:
        lines = (run / run_folder.METRICS).read_bytes().splitlines(keepends=True)
        (run / run_folder.METRICS).write_bytes(b"".join(lines[:-1]))

    said = _resumes_or_says_why_not(stopped, tmp_path / "run", damage)
    assert any("metrics.jsonl has lost rows" in line and "falling back" in line for line in said), said


def test_without_an_intact_checkpoint_the_run_starts_again(stopped: Any, tmp_path: Path) -> None:
    def damage(run: Path) -> None:
        for path in checkpoint.available(run / run_folder.CHECKPOINTS):
            (path / "arrays.npz").write_bytes(b"")

    said = _resumes_or_says_why_not(stopped, tmp_path / "run", damage)
    assert "no checkpoint is intact" in said[0] and "starting anew" in said[0], said
    assert run_folder.read_jsonl(tmp_path / "run" / run_folder.DISCARDED), "the rows are kept all the same"


def _forge(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Replace the newest checkpoint by one that is intact, but not of this run."""
    root = run / run_folder.CHECKPOINTS
    newest = checkpoint.available(root)[0]
    state = checkpoint.load(newest)
    change(state)
    shutil.rmtree(newest)
    checkpoint.save(root, state, 80, 2)


_FORGERIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no model": lambda state: state.pop("model"),
    "no budget": lambda state: state.pop("budget"),
    "clock": lambda state: state.update(clock=None),
    "module key": lambda state: state["model"]["modules"]["policy"].popitem(),
    "extra module key": lambda state: state["model"]["modules"]["policy"].update(more=th.ones(1)),
    "extra module": lambda state: state["model"]["modules"].update(critic={}),
    "shape": lambda state: state["model"]["modules"]["policy"].update(
        {"action_net.bias": th.ones(1)}  # torch would repeat it where it copies in place
    ),
    "dtype": lambda state: state["model"]["modules"]["policy"].update(
        {"action_net.bias": th.ones(2).double()}
    ),
    "nan": lambda state: state["model"]["modules"]["policy"]["action_net.bias"].fill_(float("nan")),
    "moment": lambda state: state["model"]["modules"]["policy.optimizer"]["state"][0].update(
        exp_avg=th.zeros(1)
    ),
    "counter": lambda state: state["model"]["counters"].update(num_timesteps=None),
    "environments": lambda state: state["model"]["envs"].append(state["model"]["envs"][0]),
    "observation": lambda state: state["model"]["carried"].update(_last_obs=None),
    "generator": lambda state: state["model"]["random"].update(torch=th.zeros(3, dtype=th.uint8)),
    "pending": lambda state: state["model"]["pending_metrics"].update(values=[]),
}


@pytest.mark.parametrize("forgery", _FORGERIES)
def test_a_checkpoint_that_does_not_fit_leaves_nothing_half_restored(
    stopped: Any, tmp_path: Path, forgery: str
) -> None:
    said = _resumes_or_says_why_not(stopped, tmp_path / "run", lambda run: _forge(run, _FORGERIES[forgery]))
    assert sum("falling back to" in line for line in said) == 1, said


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(number=st.integers(0, 7), place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_any_byte_of_any_file(stopped: Any, tmp_path: Path, number: int, place: float, flip: int) -> None:
    def damage(run: Path) -> None:
        files = [path for name in (run_folder.METRICS, run_folder.EVALUATIONS) for path in [run / name]]
        files += sorted((run / run_folder.CHECKPOINTS).glob("*/*"))
        path = files[number]
        content = bytearray(path.read_bytes())
        content[int(place * len(content))] ^= flip
        path.write_bytes(bytes(content))

    _resumes_or_says_why_not(stopped, tmp_path / "run", damage)


# ---------------------------------------------------------------------------------------------------- full disks


@contextmanager
def _small_files(limit: int) -> Iterator[None]:
    """As on a disk that is full: no file grows beyond some bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("limit", [40_000, 200])
def test_a_full_disk_is_reported_in_one_line(
    stopped: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], limit: int
) -> None:
    """With room for the record (40 kB) the failure is recorded; without, nothing refers to a record of it."""
    cfg, killed, expected = stopped
    folder = tmp_path / "run"
    shutil.copytree(killed, folder)
    older = [path.name for path in checkpoint.available(folder / run_folder.CHECKPOINTS)]
    with _small_files(limit), pytest.raises(RunFailed):
        train(cfg, folder, {"overrides": [], "choices": {}})
    captured = capsys.readouterr().err
    assert "failed: OSError" in captured and "File too large" in captured and "Traceback" not in captured
    assert ("holds the traceback" in captured) == (limit > 1000)
    if limit > 1000:
        assert "File too large" in run_folder.read_record(folder)["error"]
    assert [path.name for path in checkpoint.available(folder / run_folder.CHECKPOINTS)] == older
    assert not list((folder / run_folder.CHECKPOINTS).glob(".*")) and not list(folder.glob(".*.json.*"))
    _run(cfg, folder)
    assert _results(folder) == expected
