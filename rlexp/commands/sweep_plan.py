"""Which runs a sweep needs, where they lie, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from omegaconf import DictConfig

from rlexp.config import paths
from rlexp.errors import UsageError
from rlexp.record import RECORD, read_record
from rlexp.reports.records import Expected
from rlexp.reports.sweep_file import Sweep

Compose = Callable[[Sequence[str]], DictConfig]

FINISHED, MISSING, UNFINISHED, FAILED, DAMAGED = "finished", "missing", "unfinished", "failed", "damaged"

# A sweep decides these itself, run by run.
_OWN_KEYS = {"seed": "the sweep file lists the seeds", "force": "a sweep never trains a finished run twice"}


def expected_runs(sweep: Sweep, words: Sequence[str] = (), compose: Compose | None = None) -> list[Expected]:
    """Compose every run of a sweep.

    The config of a row is composed once; its seeds differ in nothing else, so that a plan of hundreds of runs
    stays quick.

    :param words: overrides of every run, ``output_dir=...`` among them
    :param compose: from words to a checked config; the real one unless a test gives another
    :raises UsageError: when a row cannot be run
    """
    compose = compose or _compose
    expected = []
    for row in sweep.rows:
        overrides = (*row.overrides, *words)
        try:
            cfg = compose([*overrides, f"seed={sweep.seeds[0]}"])
        except UsageError as error:
            raise UsageError(f"sweep {sweep.name}, row '{row.label}': {error}") from error
        for seed in sweep.seeds:
            cfg.seed = seed
            expected.append(
                Expected(
                    row.label, seed, paths.run_dir(cfg), (*overrides, f"seed={seed}"), paths.learning(cfg)
                )
            )
    return expected


def _compose(words: Sequence[str]) -> DictConfig:
    from rlexp.commands import compose  # imports Hydra

    return compose.compose(words)


def check_words(words: Iterable[str]) -> None:
    """Refuse words that a sweep has no room for.

    :raises UsageError: for anything but ``key=value``, and for keys that belong to the sweep file
    """
    for word in words:
        key, equals, value = word.partition("=")
        if word.startswith("-") or not equals:
            raise UsageError(
                f"rlexp sweep: '{word}' is neither an option (--dry-run, --jobs N) nor key=value"
            )
        if key in _OWN_KEYS:
            raise UsageError(f"{word}: {_OWN_KEYS[key]}")
        if "," in value and not value.startswith(("[", "{", "'", '"')):
            raise UsageError(
                f"{word}: one value for every run, please; settings to compare go into the sweep file"
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
    """Write seconds as people say them."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
