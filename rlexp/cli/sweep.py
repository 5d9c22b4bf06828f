"""``rlexp sweep NAME``: train what a published table or figure needs and is not there yet."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rlexp.cli.arguments import Parser, whole
from rlexp.errors import UsageError
from rlexp.reports import sweep_file
from rlexp.reports.definition import Expected, Sweep
from rlexp.sweep import execute, plan, progress
from rlexp.sweep.plan import FINISHED
from rlexp.system import stopping, terminal


def names() -> list[str]:
    """Return the sweeps that there are."""
    return list(sweep_file.available())


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "sweep",
        "[NAME] [key=value ...]",
        "Train the runs of a sweep that are not finished yet. Run the same command again to continue.",
        "  rlexp sweep\n  rlexp sweep table1 --dry-run\n  rlexp sweep table1 --jobs 2 output_dir=outputs",
    )
    parsed.add_names("NAME", "a file in sweeps/, or a path; without it, list them")
    parsed.add_overrides("overrides of every run: output_dir=...")
    parsed.add_argument("--dry-run", action="store_true", help="show the plan and train nothing")
    parsed.add_argument(
        "--jobs", type=whole(1), metavar="N", help="number of parallel runs (default: one per core)"
    )
    return parsed


def main(
    argv: list[str],
    command: execute.Command = execute.train_command,
    compose: plan.Compose | None = None,
) -> int:
    """Train what is missing.

    :param argv: arguments after ``rlexp sweep``
    :param command: command line of one run; tests substitute quick ones
    :param compose: from overrides to a config; tests substitute quick ones
    :return: 0 when everything is trained, 1 when a run failed, 130 or 143 when a signal stopped it
    :raises UsageError: when the arguments are invalid
    """
    args = parser().parse(argv)
    console = terminal.console(width=None)
    if not args.names:
        if args.overrides:
            raise UsageError(f"{args.overrides[0]}: needs the name of a sweep, e.g. rlexp sweep table1")
        for name, title in sweep_file.available().items():
            console.print(f"{name:<20} {title}", markup=False)
        return 0
    plan.check_overrides(args.overrides)
    sweep = sweep_file.load(args.names[0])
    runs = plan.expected_runs(sweep, args.overrides, compose)
    states = [plan.state(run) for run in runs]
    jobs = args.jobs or execute.cores()
    if not args.dry_run:
        from rlexp.runs.preflight import check_writable

        check_writable(_logs(runs, sweep))
    progress.show_plan(sweep, runs, states, jobs, console)
    if args.dry_run:
        return 0
    todo = [run for run, found in zip(runs, states, strict=True) if found.status != FINISHED]
    if not todo:
        console.print("nothing to train: every run is finished")
        return 0
    with progress.Progress(sweep, runs, jobs, console) as live:
        outcome = execute.Sweeper(todo, jobs, _logs(runs, sweep), live, command).run()
    again = shlex.join(["rlexp", "sweep", args.names[0], *args.overrides])
    return _conclude(outcome, again)


def _logs(runs: Sequence[Expected], sweep: Sweep) -> Path:
    # A run folder is <output_dir>/runs/<env>/<algo>/<variant>/seed=<n>.
    return runs[0].folder.parents[4] / "sweeps" / sweep.name


def _conclude(outcome: execute.Outcome, again: str) -> int:
    if outcome.signal:
        name = stopping.name(outcome.signal)
        print(f"rlexp: stopped by {name}, {outcome.left} runs left; continue with: {again}", file=sys.stderr)
        return 128 + outcome.signal
    if outcome.failed:
        which = ", ".join(f"{run.label} seed={run.seed}" for run, _, _ in outcome.failed)
        where = outcome.failed[0][2].parent
        print(
            f"{len(outcome.failed)} failed ({which}), logs in {where}; train only them again: {again}",
            file=sys.stderr,
        )
        return 1
    print(f"all {len(outcome.trained)} runs trained")
    return 0
