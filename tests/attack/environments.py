"""Faulty environments: the run fails with their own error, nothing bad is stored, nothing is left behind."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.attack import judge, sandbox
from tests.faulty import OBSERVATION_FAULTS, STEP_FAULTS

SECONDS = 120.0
_TASK = (
    "env=gym",
    "env.id=tests.faulty:{id}",
    "total_timesteps=60",
    "logger=none",
    "checkpoint.every_timesteps=10",
)
_OFF = ("algo.learning_starts=5", "algo.batch_size=4", "algo.net_arch=[4]")
ALGOS = {
    "ppo": ("algo=ppo", "algo.n_steps=10", "algo.batch_size=10", "algo.n_epochs=1", "algo.net_arch=[4]"),
    "dqn": ("algo=dqn", *_OFF, "algo.buffer_size=100"),
    "sac": ("algo=sac", *_OFF, "algo.buffer_size=100", "+env.kwargs.continuous=true"),
    "a2c": ("algo=a2c", "algo.n_steps=10", "algo.net_arch=[4]"),
    "acer": ("algo=acer",),
    "r2d2": ("algo=r2d2", "algo.learning_starts=5", "algo.batch_size=4", "algo.buffer_size=1000"),
}
WHERE = {
    "dummy": ("evaluation.episodes=0",),
    "two": ("evaluation.episodes=0", "hardware.n_envs=2"),
    "subproc": ("evaluation.episodes=0", "hardware.vec_env=subproc"),
    "evaluation": ("evaluation.episodes=2", "evaluation.n_envs=1", "+env.kwargs.only=1"),
}


@dataclass(frozen=True)
class Case:
    """One fault.

    :param at: step at which it happens, 0: in ``reset``
    :param interrupted: whether SIGTERM comes while the environment hangs
    """

    name: str
    algo: str
    where: str
    fault: str
    at: int = 13
    reset: int = 1
    space: str = "vector"
    id: str = "Faulty-v0"
    interrupted: bool = False

    @property
    def argv(self) -> list[str]:
        """The command line."""
        task = [argument.format(id=self.id) for argument in _TASK]
        kwargs = {"fault": self.fault, "at": self.at, "reset": self.reset, "space": self.space}
        return [
            *ALGOS[self.algo],
            *task,
            *WHERE[self.where],
            *(f"+env.kwargs.{k}={v}" for k, v in kwargs.items()),
        ]


def cases(seed: int) -> list[Case]:
    """Return every case; they are always the same."""
    found: list[Case] = []

    def add(algo: str, where: str, fault: str, **more: Any) -> None:
        label = " ".join(f"{key}={value}" for key, value in more.items())
        found.append(Case(f"{algo} {where}: {fault} {label}".strip(), algo, where, fault, **more))

    for number, fault in enumerate([*STEP_FAULTS, *OBSERVATION_FAULTS]):
        add(("ppo", "dqn", "sac", "a2c")[number % 4], ("dummy", "two")[number % 2], fault)
    for number, fault in enumerate(OBSERVATION_FAULTS):
        add(("dqn", "ppo")[number % 2], "dummy", fault, at=0, reset=1 + number % 2)
    for fault in (
        "nan reward",
        "nan observation",
        "raise",
        "info None",
        "nan is_success",
        "observation None",
    ):
        add("ppo", "evaluation", fault, at=3)
        add("dqn", "evaluation", fault, at=0 if "observation" in fault else 3)
    for fault in ("raise", "raise odd", "nan reward", "exit", "kill", "close raise", "four values"):
        add("ppo", "subproc", fault)
        add("dqn", "subproc", fault, at=0 if fault in ("raise", "exit") else 13)
    for fault in ("raise", "raise odd", "sys.exit", "close raise"):
        add("dqn", "dummy", fault, at=1)
        add("ppo", "dummy", fault, at=0)
    for algo in ("acer", "r2d2"):
        for fault in ("nan reward", "inf observation", "raise"):
            add(algo, "dummy", fault, at=25)
    for space in ("image", "dict", "discrete"):
        for fault in ("observation None", "observation too long"):
            add("ppo", "dummy", fault, space=space)
    for fault in ("nan observation", "four values", "terminated None", "observation None"):
        add("ppo", "dummy", fault, id="Faulty-v1", at=1)
    for where in ("dummy", "subproc", "evaluation"):
        add("ppo", where, "hang", at=13 if where != "evaluation" else 3, interrupted=True)
    return found


def _interrupt(folder: Path, child: int) -> None:
    """Send SIGTERM when the environment hangs; a second one, as an impatient person would, later."""
    until = time.monotonic() + SECONDS
    while not (folder / "hanging").exists() and time.monotonic() < until:
        time.sleep(0.1)
    for pause in (1.0, 6.0):
        time.sleep(pause)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)


def attack(case: Case, folder: Path) -> judge.Verdict:
    """Train on a faulty environment."""
    at = functools.partial(_interrupt, folder) if case.interrupted else None
    result = sandbox.run(case.argv, folder, SECONDS, at=at)
    broken = judge.judge(
        result, (143,) if case.interrupted else (1, 2) if case.fault == "close raise" else (1,)
    )
    wanted = "interrupted" if case.interrupted else "failed"
    records = list(folder.glob("outputs/runs/*/*/*/seed=0/record.json"))
    entry = json.loads(records[0].read_text()) if records else {}
    if entry.get("status") != wanted:
        broken.setdefault("wrong exit code", f"status {entry.get('status')} instead of {wanted}")
    error = str(entry.get("error"))
    if not case.interrupted and "environment 0" not in error:
        broken.setdefault("not one line", f"the record does not name the environment: {error[:150]}")
    if "EOFError" in error or "JSON" in error:
        broken.setdefault("not one line", f"not the environment's own error: {error[:150]}")
    for path in folder.glob("outputs/runs/*/*/*/seed=0/checkpoints/[0-9]*/*.npz"):
        with np.load(path, allow_pickle=False) as arrays:
            bad = [
                key
                for key in arrays.files
                if arrays[key].dtype.kind == "f" and not np.isfinite(arrays[key]).all()
            ]
        if bad:
            broken["silent difference"] = f"{path.parent.name}: {bad[0]} is not finite"
    return judge.Verdict("environments", case.name, judge.shell(case.argv), result.seconds, broken)
