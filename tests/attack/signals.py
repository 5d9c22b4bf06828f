"""Signals at every moment of every command, through the real command line: ``python -m tests.attack.signals``.

A command is paused at a moment of its own, an import or a step of its environment; then signals come. Whatever has
been trained is resumed and compared with an undisturbed run.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlexp.runs import folder as run_folder
from tests.conftest import environment
from tests.forked import Forked

TERM, INT, KILL = signal.SIGTERM, signal.SIGINT, signal.SIGKILL
HOOKS = Path(__file__).with_name("signal_hooks")
MARK = "RLEXP_SIGNAL_CASE"
PATIENCE = 120.0  # seconds for a command to reach its moment, on a busy machine
EARLY = ("listening", "wandb")  # moments of a process's start, as every import is
REPEAT = 0.7  # seconds between two signals that are meant as two

RUN = (
    "algo=ppo",
    "env=gym",
    "env.id=pausing:Pausing-v0",
    "algo.n_steps=20",
    "algo.batch_size=20",
    "algo.n_epochs=1",
    "algo.net_arch=[8]",
    "total_timesteps=100",
    "evaluation.episodes=2",
    "evaluation.n_envs=2",
    "evaluation.every_timesteps=50",
    "checkpoint.every_timesteps=20",
    "checkpoint.every_minutes=null",
)
TRAIN = (*RUN, "logger=none")


@dataclass(frozen=True)
class Case:
    """Signals at one moment of one command.

    :param command: arguments of ``rlexp``; ``{run}`` stands for the folder of a finished run
    :param moment: where the command is paused: ``import:<module>``, ``listening`` as soon as signals are answered, or
        a place in the environment, see ``signal_hooks/pausing.py``
    :param signals: sent one after the other
    :param resumes: whether the command trains, so that it is run again and compared
    :param status: what the record must say, None: there is none
    """

    command: tuple[str, ...]
    moment: str
    signals: tuple[int, ...] = (TERM,)
    resumes: bool = False
    status: str | None = None

    def __str__(self) -> str:
        name = self.command[0] if "=" not in self.command[0] else "train"
        return f"{name:8} {self.moment:28} {'+'.join(signal.Signals(one).name for one in self.signals)}"


def _train(moment: str, *signals: int, status: str | None = "interrupted", more: Sequence[str] = ()) -> Case:
    return Case((*TRAIN, *more), moment, signals, True, status)


CASES = (
    # Before there is anything on disk.
    Case(TRAIN, "listening", (TERM,)),
    Case(TRAIN, "listening", (INT,)),
    Case(TRAIN, "import:hydra", (TERM,)),
    Case(TRAIN, "import:torch", (INT,)),
    Case(TRAIN, "import:torch", (TERM, TERM)),
    Case(TRAIN, "import:pausing", (INT,)),
    Case(TRAIN, "build:1", (TERM,)),
    # In the run: start, rollout, a step that hangs, evaluations.
    _train("build:2", TERM),
    Case((*RUN, "logger=wandb_offline"), "wandb", (INT,), True, "interrupted"),
    _train("rollout", TERM),
    _train("rollout", INT),
    _train("hang", TERM, TERM),
    _train("hang", INT, INT),
    _train("evaluation", TERM),
    _train("evaluation", INT),
    _train("evaluation", TERM, status="interrupted", more=("checkpoint.every_timesteps=null",)),
    _train("evaluation:hang", TERM, TERM),
    _train("final", TERM),
    _train("final", INT, more=("checkpoint.every_timesteps=null",)),
    _train("final:hang", INT, INT),
    _train("rollout", KILL, status="dead"),
    _train("rollout", TERM, more=("hardware.vec_env=subproc", "hardware.n_envs=2")),
    _train("hang", KILL, status="dead", more=("hardware.vec_env=subproc", "hardware.n_envs=2")),
    # Many runs.
    Case(("-m", *TRAIN, "seed=0-1"), "rollout", (TERM,)),
    Case(("-m", *TRAIN, "seed=0-1", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"), "rollout", (TERM,)),
    Case(("-m", *TRAIN, "seed=0-1", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"), "hang", (INT, INT)),
    Case(("-m", *TRAIN, "seed=0-1", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"), "rollout", (KILL,)),
    # The other commands.
    Case(("list",), "import:rlexp.cli.list", (INT,)),
    Case(("sweep", "table1", "--dry-run"), "import:rlexp.sweep.plan", (TERM,)),
    Case(("sweep", "table1", "--dry-run"), "import:hydra", (INT,)),
    Case(("report", "table1"), "import:rlexp.reports.metrics", (INT,)),
    Case(("evaluate", "{run}"), "import:torch", (TERM,)),
    Case(("evaluate", "{run}"), "evaluation", (INT,)),
    Case(
        ("demos", "env=unlock_pickup", "expert=bot", "episodes=3"),
        "import:rlexp.demonstrations.collect",
        (INT,),
    ),
)


@dataclass
class Outcome:
    """What one case showed; ``faults`` is empty when all is well."""

    case: Case
    seconds: float = 0.0
    answered_s: float = 0.0
    faults: list[str] = field(default_factory=list)
    said: str = ""


class Arena:
    """A folder in which cases run; the undisturbed run that they are compared with is trained once.

    :param top: an empty folder
    :param forked: processes that are not disturbed before their first step are forked from one that has imported
        everything, which is most of their work; see :mod:`tests.forked`
    """

    def __init__(self, top: Path, *, forked: bool = False) -> None:
        self.top = top
        self.forked = forked
        self._undisturbed: dict[tuple[str, ...], Path] = {}

    def undisturbed(self, command: tuple[str, ...]) -> Path:
        """Return the folder in which a command ended by itself."""
        key = tuple(argument for argument in command if not argument.startswith(("checkpoint.", "logger=")))
        if key not in self._undisturbed:
            cwd = Path(tempfile.mkdtemp(prefix="undisturbed-", dir=self.top))
            process = self._start(command, cwd, _environment())
            assert process.wait() == 0, (cwd / "said").read_text()
            self._undisturbed[key] = cwd
        return self._undisturbed[key]

    def run(self, case: Case) -> Outcome:
        """Run one case in its own folder."""
        cwd = Path(tempfile.mkdtemp(prefix="case-", dir=self.top))
        command = case.command
        if "{run}" in command:
            run = only_run(self.undisturbed(TRAIN))
            command = tuple(str(run) if argument == "{run}" else argument for argument in command)
        outcome, began = Outcome(case), time.monotonic()
        mark = uuid.uuid4().hex
        environ = {**_environment(), MARK: mark, "RLEXP_PAUSE_AT": case.moment}
        process = self._start(command, cwd, environ, early=case.moment in EARLY or ":" in case.moment)
        try:
            self._disturb(case, process, cwd, outcome)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        outcome.said = (cwd / "said").read_text()
        self._judge(case, process.wait(), cwd, mark, outcome)
        outcome.seconds = time.monotonic() - began
        return outcome

    def _start(
        self, command: tuple[str, ...], cwd: Path, environ: dict[str, str], *, early: bool = False
    ) -> subprocess.Popen[str] | Forked:
        """Start a command whose output is appended to the file ``said``."""
        real_import = "logger=wandb_offline" in command  # of the module that stands in for it
        if self.forked and not early and not real_import:
            return Forked(command, cwd, environ, said=cwd / "said")
        with (cwd / "said").open("a") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "rlexp", *command],
                cwd=cwd,
                env=environ,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
            )

    def _disturb(
        self, case: Case, process: subprocess.Popen[str] | Forked, cwd: Path, outcome: Outcome
    ) -> None:
        if not _wait(lambda: _reached(case.moment, process.pid, cwd) or process.poll() is not None, PATIENCE):
            outcome.faults.append("never came to its moment")
            return
        said_before = len((cwd / "said").read_text())
        for number, one in enumerate(case.signals):
            if number:
                time.sleep(REPEAT)
            process.send_signal(one)
            sent = time.monotonic()
            if number == 0 and one != KILL:
                _wait(lambda: len((cwd / "said").read_text()) > said_before or process.poll() is not None, 10)
                outcome.answered_s = time.monotonic() - sent
        (cwd / "go").touch()  # a moment that is not a hang passes
        if not _wait(lambda: process.poll() is not None, PATIENCE):
            outcome.faults.append("did not end")

    def _judge(self, case: Case, code: int, cwd: Path, mark: str, outcome: Outcome) -> None:
        faults = outcome.faults
        if "Traceback" in outcome.said:
            faults.append("traceback")
        killed = case.signals == (KILL,)
        expected = {-KILL} if killed else {128 + case.signals[0]}
        if (
            len(case.signals) > 1
        ):  # the second one may meet the interpreter taking itself down; a shell sees the same
            expected.add(-case.signals[0])
        if code not in expected:
            faults.append(f"exit code {code}, not {max(expected)}")
        if not killed and outcome.answered_s > 2.0:
            faults.append(f"answered after {outcome.answered_s:.1f} s")
        if not _wait(lambda: not _alive(mark), 10.0):
            faults.append("processes left: " + ", ".join(_alive(mark)))
        runs = run_folders(cwd)
        for run in runs:
            entry = run_folder.read_record(run)
            found = run_folder.status(run, entry)
            if found == "running" or (entry["status"] == "running" and not killed):
                faults.append(f"record left at {found}")
            if case.resumes and found != case.status:
                faults.append(f"status {found}, not {case.status}")
        if case.status is None and not runs and (cwd / "outputs" / "runs").exists():
            faults.append("a folder left without a record")
        if case.resumes and not faults:
            self._resume(case, cwd, outcome)

    def _resume(self, case: Case, cwd: Path, outcome: Outcome) -> None:
        code = self._start(case.command, cwd, _environment()).wait()
        outcome.said = (cwd / "said").read_text()
        if code != 0:
            outcome.faults.append(f"resumed with exit code {code}")
        elif differing := differences(only_run(cwd), only_run(self.undisturbed(case.command))):
            outcome.faults.append(f"resumed otherwise: {', '.join(differing)}")


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(HOOKS), os.environ.get("PYTHONPATH"))))
    return {**environment(), "PYTHONPATH": path}


def _wait(condition: Any, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _reached(moment: str, process: int, cwd: Path) -> bool:
    if moment != "listening":
        return (cwd / "reached").exists()
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    caught = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), 16)
    return bool(caught >> (TERM - 1) & 1)


def _alive(mark: str) -> list[str]:
    """Return the living processes that a case has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                continue
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:100])
        except OSError:
            continue
    return found


def run_folders(cwd: Path) -> list[Path]:
    """Return the run folders below a folder that hold a record."""
    return sorted(path.parent for path in cwd.glob(f"outputs/runs/*/*/*/seed=*/{run_folder.RECORD}"))


def only_run(cwd: Path) -> Path:
    """Return the one run folder below a folder."""
    (found,) = run_folders(cwd)
    return found


def differences(one: Path, other: Path) -> list[str]:
    """Name what differs between two run folders: weights, rows, the final evaluation."""
    found = [
        name
        for name in (run_folder.METRICS, run_folder.EVALUATIONS)
        if _rows(one / name) != _rows(other / name)
    ]
    if _weights(one) != _weights(other):
        found.append("weights")
    finals = [_timeless(run_folder.read_record(folder)["evaluation"]) for folder in (one, other)]
    return [*found, "final evaluation"] if finals[0] != finals[1] else found


def _rows(path: Path) -> list[dict[str, Any]]:
    return [_timeless(row) for row in run_folder.read_jsonl(path)]


def _timeless(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "wall_s"}


def _weights(folder: Path) -> dict[str, Any]:
    import torch as th

    found: dict[str, Any] = {}
    with zipfile.ZipFile(folder / "model.zip") as archive:
        for name in archive.namelist():
            if name.endswith(".pth") and "variables" not in name:
                tree = th.load(io.BytesIO(archive.read(name)), weights_only=True)
                found[name] = json.dumps(tree, default=lambda part: part.tolist(), sort_keys=True)
    return found


COUNTED = {
    "tracebacks": "traceback",
    "records left at running": "record left",
    "processes left": "processes left",
    "wrong exit codes": "exit code",
    "resumes not bit-identical": "resumed otherwise",
}


def attack(cases: Sequence[Case] = CASES) -> dict[str, int]:
    """Run the cases one after the other, a printed line each.

    :return: how many signals were sent, and how often something was wrong, by kind; all but the first must be 0
    """
    counts = {"signals": 0, **dict.fromkeys(COUNTED, 0), "other faults": 0}
    with tempfile.TemporaryDirectory(prefix="signals-") as top:
        arena = Arena(Path(top))
        for case in cases:
            outcome = arena.run(case)
            counts["signals"] += len(case.signals)
            for fault in outcome.faults:
                kind = next((kind for kind, start in COUNTED.items() if start in fault), "other faults")
                counts[kind] += 1
            result = "; ".join(outcome.faults) or "ok"
            print(f"{case}  {outcome.answered_s:4.2f} s  {result}", flush=True)
            if outcome.faults:
                print("    " + outcome.said.replace("\n", "\n    "), flush=True)
    return counts


if __name__ == "__main__":
    chosen = [
        case for case in CASES if not sys.argv[1:] or any(argument in str(case) for argument in sys.argv[1:])
    ]
    totals = attack(chosen)
    print(totals)
    sys.exit(any(count for kind, count in totals.items() if kind != "signals"))
