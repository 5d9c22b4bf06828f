"""Sweeps with quick stand-ins for training: plan, failures, signals, kill -9, continuation."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from rlexp.cli import sweep
from rlexp.errors import UsageError
from rlexp.reports import sweep_file
from rlexp.reports.definition import Expected
from rlexp.runs import folder as run_folder
from rlexp.sweep import execute, plan, progress
from tests.reports import synthetic

FAKE = Path(__file__).with_name("fake_run.py")

SWEEP = """
title: Quick
seeds: 0-2
seconds_per_run: 30
runs:
  - {label: PPO, overrides: [algo=ppo]}
  - {label: LCPO, overrides: [algo=lcpo]}
  - {label: LCPO again, overrides: [algo=lcpo]}
"""


def quick(seconds: float = 0.2, **how: str) -> Callable[[Expected], list[str]]:
    """Return a command for every run; ``PPO_1="fail"`` makes seed 1 of PPO fail."""

    def command(run: Expected) -> list[str]:
        arguments = [sys.executable, str(FAKE), str(run.folder), str(seconds)]
        return [*arguments, *filter(None, [how.get(f"{run.label.split()[0]}_{run.seed}")])]

    return command


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "quick.yaml").write_text(SWEEP)
    monkeypatch.setattr(sweep_file, "sweeps_dir", lambda: tmp_path / "sweeps")
    return tmp_path


def runs(top: Path) -> list[Expected]:
    loaded = sweep_file.load("quick", top / "sweeps")
    return plan.expected_runs(loaded, [f"output_dir={top / 'out'}"], synthetic.compose)


def go(top: Path, *arguments: str, command: execute.Command | None = None) -> int:
    return sweep.main(
        ["quick", f"output_dir={top / 'out'}", *arguments], command or quick(), synthetic.compose
    )


def starts(run: Expected) -> int:
    path = run.folder / "starts"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_seeds_share_a_row_and_equal_settings_share_a_folder(top: Path) -> None:
    found = runs(top)
    assert len(found) == 9 and len({run.folder for run in found}) == 6
    assert found[0].overrides == ("algo=ppo", f"output_dir={top / 'out'}", "seed=0")
    assert found[0].folder.name == "seed=0" and found[0].folder.parent.parent.name == "ppo"


def test_dry_run_shows_the_plan_and_writes_nothing(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert go(top, "--dry-run", "--jobs", "2") == 0
    printed = capsys.readouterr().out
    assert "6 runs (9 table entries share 6 runs): 0 finished, 6 missing; about 90 s with 2 jobs" in printed
    assert "at a stated 30 s per run" in printed
    assert not (top / "out").exists()


def test_trains_what_is_missing_and_nothing_twice(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = runs(top)
    found[0].folder.mkdir(parents=True)
    (found[0].folder / "record.json").write_text(json.dumps({"status": "finished", "wall_s": 12.0}))
    assert go(top, "--jobs", "3") == 0
    assert [starts(run) for run in found] == [0, 1, 1, 1, 1, 1, 1, 1, 1]
    printed = capsys.readouterr().out
    assert "1 finished, 5 missing" in printed and "from finished runs" in printed
    assert "started   PPO seed=1" in printed and "finished  LCPO seed=2 in" in printed and "6 of 6" in printed
    assert "OMP=1" in (found[1].folder / "starts").read_text()
    assert go(top) == 0
    assert "nothing to train" in capsys.readouterr().out
    assert starts(found[1]) == 1


def test_a_failure_is_reported_at_once_and_the_others_finish(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert go(top, "--jobs", "1", command=quick(0.2, PPO_0="fail", LCPO_1="crash")) == 1
    out, err = capsys.readouterr()
    lines = out.splitlines()
    reported = next(number for number, line in enumerate(lines) if line.startswith("FAILED"))
    assert lines[reported] == "FAILED    PPO seed=0: ArithmeticError: loss became nan at step 17"
    assert "log: " in lines[reported + 1] and any(line.startswith("finished") for line in lines[reported:])
    assert "FAILED    LCPO seed=1: exit code 7 without a message" in out
    assert "2 failed (PPO seed=0, LCPO seed=1)" in err
    assert f"train only them again: rlexp sweep quick output_dir={top / 'out'}" in err
    finished = [run for run in runs(top) if plan.state(run).status == plan.FINISHED]
    assert len({run.folder for run in finished}) == 4
    assert go(top) == 0  # the same line trains only what failed
    assert {starts(run) for run in finished} == {1}


def test_real_command_line() -> None:
    run = Expected("x", 1, Path("somewhere"), ("algo=ppo", "seed=1"), {})
    assert execute.train_command(run)[1:] == [
        "-P",  # nothing is imported from the working directory
        "-m",
        "rlexp",
        "algo=ppo",
        "seed=1",
        "hardware.torch_threads=1",
    ]


SCRIPT = """
import sys
from pathlib import Path
from rlexp.cli import sweep
from rlexp.reports import sweep_file
from tests.sweep.test_sweep import quick
from tests.reports import synthetic
top = Path(sys.argv[1])
sweep_file.sweeps_dir = lambda: top / "sweeps"
sys.exit(sweep.main(["quick", f"output_dir={top / 'out'}", "--jobs", "2"], quick(1.0), synthetic.compose))
"""


def begin(top: Path) -> subprocess.Popen[str]:
    repository = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(top)],
        cwd=repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: sum(starts(run) for run in runs(top)[:6]) >= 2)
    return process


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.05)


def process_ids(top: Path) -> list[int]:
    lines = [
        line
        for run in runs(top)[:6]
        if starts(run)
        for line in (run.folder / "starts").read_text().splitlines()
    ]
    return [int(line.split()[0]) for line in lines]


def alive(number: int) -> bool:
    try:
        status = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_reach_the_runs_and_their_checkpoints_are_waited_for(
    top: Path, number: signal.Signals, code: int
) -> None:
    process = begin(top)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    name = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"
    heard, ended = err.splitlines()
    assert heard == (
        f"rlexp: {name}: stopping: 2 runs save their state and end; a second signal ends them at once"
    )
    assert "6 runs left; continue with: rlexp sweep quick" in ended and "Traceback" not in out
    states = [
        json.loads((run.folder / "record.json").read_text())["status"] for run in runs(top)[:6] if starts(run)
    ]
    assert "interrupted" in states and "running" not in states
    assert not any(alive(one) for one in process_ids(top))


def test_kill_9_leaves_no_run_behind_and_the_same_command_continues(top: Path) -> None:
    for _ in range(2):
        process = begin(top) if not process_ids(top) else begin_again(top)
        time.sleep(0.3)
        process.kill()
        process.communicate()
        wait_for(lambda: not any(alive(one) for one in process_ids(top)), 10.0)
    assert go(top, "--jobs", "4", command=quick(1.0)) == 0
    found = runs(top)
    assert all(plan.state(run).status == plan.FINISHED for run in found)
    assert [(run.folder / "progress").read_text() for run in found] == ["10"] * 9  # resumed, not begun anew
    assert max(starts(run) for run in found) <= 3


def begin_again(top: Path) -> subprocess.Popen[str]:
    before = len(process_ids(top))
    process = begin(top)
    wait_for(lambda: len(process_ids(top)) > before)
    return process


def test_a_run_of_another_process_is_left_alone(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = runs(top)[0]
    mine.folder.mkdir(parents=True)
    holder = subprocess.Popen([sys.executable, str(FAKE), str(mine.folder), "2.0"])
    wait_for(lambda: starts(mine) == 1)
    assert run_folder.in_use(mine.folder)
    assert go(top, "--jobs", "6") == 0
    holder.wait()
    printed = capsys.readouterr().out
    assert "waiting   PPO seed=0: another process is working on it" in printed
    assert "finished  PPO seed=0 by another process" in printed
    assert starts(mine) == 1  # the sweep never touched it


def test_estimate_uses_the_row_then_all_then_the_default(top: Path) -> None:
    found = runs(top)[:6]
    missing = plan.State(plan.MISSING)
    done = plan.State(plan.FINISHED, 10.0)
    assert plan.seconds_left(found, [missing] * 6, 2, 30.0) == (90.0, False)
    states = [done, missing, missing, missing, missing, missing]
    assert plan.seconds_left(found, states, 1, 30.0) == (50.0, True)
    states = [done, missing, missing, plan.State(plan.FINISHED, 40.0), missing, missing]
    assert plan.seconds_left(found, states, 1, 30.0) == (2 * 10.0 + 2 * 40.0, True)
    assert plan.seconds_left(found, states, 100, 30.0) == (40.0, True)
    assert plan.seconds_left(found, [done] * 6, 2, 30.0)[0] == 0.0


def test_live_table_on_a_terminal(top: Path) -> None:
    found = runs(top)
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120)
    loaded = sweep_file.load("quick", top / "sweeps")
    with progress.Progress(loaded, found, 2, console) as live:
        outcome = execute.Sweeper(found, 2, top / "logs", live, quick(0.2, PPO_1="fail")).run()
    assert len(outcome.trained) == 5 and len(outcome.failed) == 1
    printed = stream.getvalue()
    assert "FAILED    PPO seed=1" in printed and "5 of 6" in printed and "LCPO again" in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["quik"], "did you mean 'quick'"),
        (["quick", "--jobs", "0"], "at least 1"),
        (["quick", "--jobs", "many"], "must be a whole number"),
        (["quick", "seed=3"], "lists the seeds"),
        (["quick", "force=true"], "never trains a finished run twice"),
        (["quick", "algo.n_steps"], "settings are written key=value"),
        (["quick", "algo.n_steps=50,100"], "takes one value for every run"),
        (["seed=3"], "needs the name of a sweep"),
        (["quick", "--dryrun"], "did you mean '--dry-run'"),
    ],
)
def test_bad_arguments(top: Path, arguments: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        sweep.main(arguments, quick(), synthetic.compose)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert sorted(path.name for path in top.iterdir()) == ["sweeps"]


def test_a_row_that_cannot_be_composed_is_named(top: Path) -> None:
    def reject(arguments: list[str]) -> object:
        raise UsageError("algo: no such option")

    with pytest.raises(UsageError, match="sweep quick, row 'PPO': algo: no such option"):
        sweep.main(["quick"], quick(), reject)  # type: ignore[arg-type]


def test_list(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep.main([]) == 0
    assert "quick" in capsys.readouterr().out
    assert [path.name for path in top.iterdir()] == ["sweeps"]
