"""``rlexp sweep NAME``: train what a published table or figure needs and is not there yet."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rlexp import stopping, terminal
from rlexp.commands import sweep_plan, sweep_run, sweep_show
from rlexp.commands.arguments import Parser
from rlexp.commands.sweep_plan import FINISHED
from rlexp.errors import UsageError
from rlexp.reports import sweep_file
from rlexp.reports.records import Expected


def names() -> list[str]:
    """Return the sweeps that there are."""
    return list(sweep_file.available())


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "sweep",
        "Train the runs of a sweep that are not finished yet. Run again, it continues.",
        "  rlexp sweep\n  rlexp sweep table1 --dry-run\n  rlexp sweep table1 --jobs 2 output_dir=outputs",
    )
    parsed.add_argument(
        "name", nargs="?", metavar="NAME", help="a file in sweeps/, or a path; none: list them"
    )
    parsed.add_argument(
        "words", nargs="*", metavar="key=value", help="overrides of every run: output_dir=..."
    )
    parsed.add_argument("--dry-run", action="store_true", help="show the plan and train nothing")
    parsed.add_argument("--jobs", type=int, metavar="N", help="runs side by side (default: one per core)")
    return parsed


def main(
    argv: list[str],
    command: sweep_run.Command = sweep_run.train_command,
    compose: sweep_plan.Compose | None = None,
) -> int:
    """Run the verb.

    :param argv: words after ``rlexp sweep``
    :param command: command line of one run; tests give quick ones
    :param compose: from words to a config; tests give quick ones
    :return: 0 when everything is trained, 1 when a run failed, 130 or 143 when a signal stopped it
    :raises UsageError: when the words make no sense
    """
    args = parser().parse(argv)
    console = terminal.console(width=None)
    if args.name is None:
        for name, title in sweep_file.available().items():
            console.print(f"{name:<20} {title}", markup=False)
        return 0
    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs: {args.jobs} given, must be at least 1")
    sweep_plan.check_words(args.words)
    sweep = sweep_file.load(args.name)
    runs = sweep_plan.expected_runs(sweep, args.words, compose)
    states = [sweep_plan.state(run) for run in runs]
    jobs = args.jobs or sweep_run.cores()
    sweep_show.show_plan(sweep, runs, states, jobs, console)
    if args.dry_run:
        return 0
    todo = [run for run, found in zip(runs, states, strict=True) if found.status != FINISHED]
    if not todo:
        console.print("nothing to train: every run is finished")
        return 0
    with sweep_show.Progress(sweep, runs, jobs, console) as progress:
        outcome = sweep_run.Sweeper(todo, jobs, _logs(runs, sweep), progress, command).run()
    again = shlex.join(["rlexp", "sweep", args.name, *args.words])
    return _conclude(outcome, again)


def _logs(runs: Sequence[Expected], sweep: sweep_file.Sweep) -> Path:
    # A run folder is <output_dir>/runs/<env>/<algo>/<variant>/seed=<n>.
    return runs[0].folder.parents[4] / "sweeps" / sweep.name


def _conclude(outcome: sweep_run.Outcome, again: str) -> int:
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
