"""Which runs a sweep needs, where they lie, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from omegaconf import DictConfig

from rlexp.config import paths
from rlexp.errors import UsageError
from rlexp.reports.definition import Expected, Sweep
from rlexp.runs.folder import RECORD, read_record

Compose = Callable[[Sequence[str]], DictConfig]

FINISHED, MISSING, UNFINISHED, FAILED, DAMAGED = "finished", "missing", "unfinished", "failed", "damaged"

# A sweep decides these itself, run by run.
_OWN_KEYS = {"seed": "the sweep file lists the seeds", "force": "a sweep never trains a finished run twice"}


def expected_runs(
    sweep: Sweep, overrides: Sequence[str] = (), compose: Compose | None = None
) -> list[Expected]:
    """Compose every run of a sweep.

    The config of a row is composed once; its seeds differ in nothing else, so that a plan of hundreds of runs
    stays quick.

    :param overrides: of every run, ``output_dir=...`` among them
    :param compose: from overrides to a checked config; a test may substitute its own
    :raises UsageError: when a row cannot be run
    """
    compose = compose or _compose
    expected = []
    for row in sweep.rows:
        shared = (*row.overrides, *overrides)
        try:
            cfg = compose([*shared, f"seed={sweep.seeds[0]}"])
        except UsageError as error:
            raise UsageError(f"sweep {sweep.name}, row '{row.label}': {error}") from error
        for seed in sweep.seeds:
            cfg.seed = seed
            expected.append(
                Expected(row.label, seed, paths.run_dir(cfg), (*shared, f"seed={seed}"), paths.reported(cfg))
            )
    return expected


def _compose(overrides: Sequence[str]) -> DictConfig:
    from rlexp.config import compose  # imports Hydra

    return compose.compose(overrides)


def check_overrides(overrides: Iterable[str]) -> None:
    """Reject overrides that cannot hold for a whole sweep.

    :raises UsageError: for keys that belong to the sweep file, and for several values of one key
    """
    for override in overrides:
        key, _, value = override.partition("=")
        if key in _OWN_KEYS:
            raise UsageError(f"{override}: {_OWN_KEYS[key]}")
        if "," in value and not value.startswith(("[", "{", "'", '"')):
            raise UsageError(
                f"{override}: takes one value for every run; settings to compare belong in the sweep file"
            )


@dataclass(frozen=True)
class State:
    """What a run folder says of a run.

    :param status: one of the constants of this module
    :param seconds: wall time of a finished run
    :param error: last line of what went wrong
    """

    status: str
    seconds: float | None = None
    error: str = ""


def state(run: Expected) -> State:
    """Look at a run folder."""
    if not (run.folder / RECORD).is_file():
        return State(MISSING)
    try:
        record = read_record(run.folder)
    except UsageError as error:
        return State(DAMAGED, error=str(error))
    if record["status"] == "finished":
        seconds = record.get("wall_s")
        return State(FINISHED, None if seconds is None else float(seconds))
    if record["status"] == "failed":
        lines = [line.strip() for line in str(record.get("error") or "").splitlines() if line.strip()]
        return State(FAILED, error=lines[-1] if lines else "")
    return State(UNFINISHED)


def seconds_left(
    runs: Sequence[Expected], states: Sequence[State], jobs: int, default: float
) -> tuple[float, bool]:
    """Estimate how long the runs that are not finished will take.

    A run is expected to take as long as the finished ones of its row did on average, else as those of all.

    :param default: seconds of a run when none has finished yet
    :return: seconds, and whether they come from finished runs
    """
    known: dict[str, list[float]] = {}
    for run, found in zip(runs, states, strict=True):
        if found.status == FINISHED and found.seconds is not None:
            known.setdefault(run.label, []).append(found.seconds)
    every = [seconds for row in known.values() for seconds in row]
    general = sum(every) / len(every) if every else default
    left = [
        sum(known[run.label]) / len(known[run.label]) if run.label in known else general
        for run, found in zip(runs, states, strict=True)
        if found.status != FINISHED
    ]
    if not left:
        return 0.0, bool(every)
    # No schedule is shorter than its longest job.
    return max(sum(left) / max(1, jobs), max(left)), bool(every)


def duration(seconds: float) -> str:
    """Format seconds for people."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
