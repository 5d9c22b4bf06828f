"""Contracts of whole runs: interrupted, killed or damaged, a run ends as if nothing had happened."""

from __future__ import annotations

import os
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from omegaconf import DictConfig

from rlexp.config.compose import compose
from rlexp.demonstrations import storage
from rlexp.runs import checkpoint
from rlexp.runs import folder as run_folder
from rlexp.runs.callbacks import Budget
from rlexp.runs.experiment import Experiment
from rlexp.runs.factories import make_evaluator
from rlexp.runs.loading import load_trained
from rlexp.system import terminal
from rlexp.testing import toy_environments
from rlexp.testing.cases import STEPS, Case, require, same, weights

_NOT_DECIDED = ("wall_s", "time/fps", "time/time_elapsed", "time/iterations")


class _Killed(BaseException):
    """Simulates SIGKILL: no handler catches it."""


def resumes_as_a_run(case: Case, *overrides: str) -> None:
    """A run ends like any other after SIGTERM, and after a kill and damage to its newest checkpoint.

    The same are weights, metrics and evaluations, and ``rlexp evaluate`` repeats the recorded final evaluation.

    :param overrides: of the run, beside the settings of the case
    :raises ContractError: naming what differs
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        cfg = _config(case, root, overrides)
        plain = _finished(case, cfg, root / "plain")
        _measures_what_it_saves(cfg, root / "plain")

        _stopped(cfg, root / "interrupted", _terminate)
        status = run_folder.read_record(root / "interrupted")["status"]
        require(status == "interrupted", f"a run that SIGTERM stopped is recorded as {status}")
        same(plain, _finished(case, cfg, root / "interrupted"), "a run and one that SIGTERM interrupted")

        _stopped(cfg, root / "damaged", _kill)
        newest = checkpoint.available(root / "damaged" / run_folder.CHECKPOINTS)[0]
        largest = max(newest.iterdir(), key=lambda path: path.stat().st_size)
        largest.write_bytes(largest.read_bytes()[:-100])
        same(
            plain,
            _finished(case, cfg, root / "damaged"),
            "a run and one that was killed, its newest checkpoint damaged",
        )


def _config(case: Case, root: Path, overrides: Sequence[str]) -> DictConfig:
    settings = dict(case.settings)
    if case.demonstrations:
        settings["demonstrations"] = str(root / "demonstrations.npz")
        storage.write(root / "demonstrations.npz", toy_environments.demonstrate(case.observations))
    return compose(
        [
            f"algo={case.spec.name}",
            *(f"algo.{key}={value}" for key, value in settings.items()),
            "env=gym",
            f"env.id=rlexp.testing.toy_environments:rlexp-testing/{case.observations}-{case.actions}-v0",
            f"total_timesteps={STEPS}",
            f"output_dir={root}",
            "logger=none",
            "hardware=cpu",
            "checkpoint.every_timesteps=8",
            "checkpoint.keep_last=3",
            "evaluation.episodes=10",
            f"evaluation.every_timesteps={STEPS // 2}",
            "evaluation.deterministic=false",
            *overrides,
        ]
    )


def _finished(case: Case, cfg: DictConfig, folder: Path) -> dict[str, Any]:
    """Run, or run on, to the end; return what a run leaves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a damaged checkpoint is warned of
        _run(cfg, folder)
    status = run_folder.read_record(folder)["status"]
    require(status == "finished", f"a run that ended is recorded as {status}")
    model = case.target.load(folder / "model.zip", device="cpu")
    return {
        "weights": weights(model),
        "metrics": _rows(folder / run_folder.METRICS),
        "evaluations": _rows(folder / run_folder.EVALUATIONS),
    }


def _measures_what_it_saves(cfg: DictConfig, folder: Path) -> None:
    recorded = run_folder.read_record(folder)["evaluation"]
    evaluator = make_evaluator(cfg)
    measured = evaluator.evaluate(load_trained(cfg, folder))
    evaluator.close()
    kept = {key: recorded[key] for key in measured}
    same(_decided(kept), _decided(measured), "the recorded final evaluation and what rlexp evaluate measures")


def _run(cfg: DictConfig, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    Experiment(cfg, folder, {"overrides": [], "choices": {}}, terminal.console(quiet=True)).run()


def _stopped(cfg: DictConfig, folder: Path, how: Callable[[], None]) -> None:
    with _at_step(STEPS * 5 // 8, how):
        try:
            _run(cfg, folder)
        except BaseException as error:
            if isinstance(error, Exception) and type(error).__name__ != "Interrupted":
                raise
    left = checkpoint.available(folder / run_folder.CHECKPOINTS)
    require(
        len(left) > 1,
        f"a run with checkpoint.every_timesteps=8 that stopped had written {len(left)} checkpoints",
    )


def _terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _kill() -> None:
    raise _Killed


@contextmanager
def _at_step(step: int, call: Callable[[], None]) -> Iterator[None]:
    """Call once, when training reaches a step."""
    usual, left = Budget._on_step, [call]

    def on_step(budget: Budget) -> bool:
        if left and budget.num_timesteps >= step:
            left.pop()()
        return usual(budget)

    with mock.patch.object(Budget, "_on_step", on_step):
        yield


def _rows(path: Path) -> list[dict[str, Any]]:
    return [_decided(row) for row in run_folder.read_jsonl(path)]


def _decided(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in _NOT_DECIDED}
