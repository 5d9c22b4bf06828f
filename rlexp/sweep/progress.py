"""What a person sees of a sweep: a live table on a terminal, one line per event elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlexp.reports.definition import Expected, Sweep
from rlexp.runs.folder import EVALUATIONS
from rlexp.runs.stored import parse_json, validate_row
from rlexp.sweep.plan import FAILED, FINISHED, State, duration, seconds_left, state
from rlexp.system.files import open_file

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

_REFRESH_SECONDS = 1.0


class Progress:
    """Counts what happens and prints it.

    :param runs: every run of the sweep, finished or not
    :param jobs: processes side by side
    """

    def __init__(self, sweep: Sweep, runs: Sequence[Expected], jobs: int, console: Console) -> None:
        self._sweep = sweep
        self._runs = runs
        self._jobs = jobs
        self._console = console
        self._states: dict[Path, State] = {run.folder: state(run) for run in runs}
        self._failed: set[Path] = set()
        self._running: Sequence[Expected] = ()
        self._live: Live | None = None
        self._drawn = 0.0

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            from rich.live import Live

            # No refresh thread: the sweep forks, and forking beside threads is asking for trouble.
            self._live = Live(self._table(), console=self._console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.update(self._table(), refresh=True)
            self._live.stop()

    def started(self, run: Expected) -> None:
        """A process has begun."""
        if self._live is None:
            self._say(f"started   {run.label} seed={run.seed}")

    def finished(self, run: Expected, seconds: float) -> None:
        """A run is complete."""
        self._states[run.folder] = state(run)
        if self._live is None:
            took = f" in {duration(seconds)}" if seconds else " by another process"
            last = last_value(run)
            self._say(
                f"finished  {run.label} seed={run.seed}{took}{f', {last}' if last else ''}; {self.counts()}"
            )

    def failed(self, run: Expected, error: str, log: Path) -> None:
        """A run has failed; printed immediately, on a terminal above the live table."""
        self._failed.add(run.folder)
        self._say(f"FAILED    {run.label} seed={run.seed}: {error}", style="bold red")
        self._say(f"          log: {log}")

    def waiting(self, run: Expected) -> None:
        """A run belongs to another process."""
        self._say(f"waiting   {run.label} seed={run.seed}: another process is working on it")

    def tick(self, running: Sequence[Expected], waiting: int) -> None:
        """Some time has passed."""
        self._running = running
        if self._live is not None and time.monotonic() - self._drawn >= _REFRESH_SECONDS:
            self._drawn = time.monotonic()
            self._live.update(self._table(), refresh=True)

    def counts(self) -> str:
        """Say how far the sweep is."""
        unique = {run.folder: run for run in self._runs}
        states = [self._states[folder] for folder in unique]
        done = sum(found.status == FINISHED for found in states)
        open_runs = [
            (run, found)
            for run, found in zip(unique.values(), states, strict=True)
            if run.folder not in self._failed
        ]
        left, _ = seconds_left(
            [run for run, _ in open_runs],
            [found for _, found in open_runs],
            self._jobs,
            self._sweep.seconds_per_run,
        )
        rest = f", about {duration(left)} left" if left else ""
        return f"{done} of {len(unique)}{rest}"

    def _say(self, line: str, style: str | None = None) -> None:
        self._console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    def _table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(title=f"{self._sweep.title}: {self.counts()}", title_justify="left")
        for heading in ("", "finished", "running", "failed", "waiting", "now"):
            table.add_column(heading, justify="left" if heading in ("", "now") else "right")
        running = {run.folder for run in self._running}
        for row in self._sweep.rows:
            runs = [run for run in self._runs if run.label == row.label]
            done = [run for run in runs if self._states[run.folder].status == FINISHED]
            failed = [run for run in runs if run.folder in self._failed]
            active = [run for run in runs if run.folder in running]
            rest = len(runs) - len(done) - len(failed) - len(active)
            now = "; ".join(filter(None, (f"seed={run.seed} {last_value(run)}" for run in active)))
            table.add_row(
                row.label,
                f"{len(done)}/{len(runs)}",
                str(len(active) or ""),
                Text(str(len(failed)), style="red") if failed else "",
                str(rest or ""),
                now,
            )
        return table


def last_value(run: Expected) -> str:
    """Say how far a run is and what it reached, from the last line of its evaluations."""
    try:
        with open_file(run.folder / EVALUATIONS, "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 4096))
            lines = file.read().split(b"\n")
        row = validate_row(parse_json(lines[-2]), "row", ("episodes", "return_mean"))
    except (OSError, ValueError, IndexError):
        return ""
    value = (
        f"{row['success_rate']:.1%}" if row.get("success_rate") is not None else f"{row['return_mean']:.2f}"
    )
    return f"@{row['episodes']}: {value}"


def show_plan(
    sweep: Sweep, runs: Sequence[Expected], states: Sequence[State], jobs: int, console: Console
) -> None:
    """Print what a sweep would do."""
    from rich.table import Table

    table = Table(title=sweep.title, title_justify="left")
    for heading in ("", "total", "finished", "missing", "overrides"):
        table.add_column(heading, justify="left" if heading in ("", "overrides") else "right")
    shared = set.intersection(*(set(row.overrides) for row in sweep.rows))
    for row in sweep.rows:
        found = [one for run, one in zip(runs, states, strict=True) if run.label == row.label]
        done = sum(one.status == FINISHED for one in found)
        own = " ".join(override for override in row.overrides if override not in shared)
        table.add_row(row.label, str(len(found)), str(done), str(len(found) - done), own)
    console.print(table)
    common = [override for override in sweep.rows[0].overrides if override in shared]
    if common:
        console.print(f"all rows: {' '.join(common)}", markup=False)
    unique = {run.folder: (run, one) for run, one in zip(runs, states, strict=True)}
    finished = sum(one.status == FINISHED for _, one in unique.values())
    failed = sum(one.status == FAILED for _, one in unique.values())
    left, measured = seconds_left(
        [run for run, _ in unique.values()], [one for _, one in unique.values()], jobs, sweep.seconds_per_run
    )
    duplicates = f" ({len(runs)} table entries share {len(unique)} runs)" if len(unique) < len(runs) else ""
    failures = f" ({failed} of them failed before)" if failed else ""
    basis = "from finished runs" if measured else f"at a stated {duration(sweep.seconds_per_run)} per run"
    console.print(
        f"{len(unique)} runs{duplicates}: {finished} finished, {len(unique) - finished} missing{failures}; "
        f"about {duration(left)} with {jobs} jobs, {basis}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
