"""Which of the runs that a report needs are there, and why the others are not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from omegaconf.errors import OmegaConfBaseException

from rlexp import registry
from rlexp.config.paths import learning
from rlexp.errors import UsageError
from rlexp.record import CONFIG, RECORD, read_evaluations, read_record, status
from rlexp.stored import read_config
from rlexp.terminal import one_line

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Expected:
    """A run that must exist.

    :param label: row of the sweep
    :param seed: its seed
    :param folder: where it lies once it has been trained
    :param overrides: the words that train it, seed included
    :param learning: everything in its config that decides what is learned; see :func:`learning`
    """

    label: str
    seed: int
    folder: Path
    overrides: tuple[str, ...]
    learning: Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """A finished run that fits what was expected."""

    label: str
    seed: int
    folder: Path
    record: Mapping[str, Any]
    evaluations: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Absent:
    """A run that cannot enter a report, and why."""

    label: str
    seed: int
    reason: str


@dataclass
class Collection:
    """What there is, by row label; seeds in order."""

    runs: dict[str, list[Run]] = field(default_factory=dict)
    absent: list[Absent] = field(default_factory=list)
    expected: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def collect(expected: Iterable[Expected], reference: Path | None = None) -> Collection:
    """Look every expected run up.

    :param expected: what must exist
    :param reference: folder of committed records to read instead of the run folders; there, config keys that
        only one side knows are tolerated and named, since records outlive the keys of the day they were made
    """
    found = Collection()
    for wanted in expected:
        found.expected[wanted.label] = found.expected.get(wanted.label, 0) + 1
        runs = found.runs.setdefault(wanted.label, [])
        folder = (
            wanted.folder if reference is None else reference_folder(reference, wanted.label, wanted.seed)
        )
        run = _examine(wanted, folder, found.notes if reference is not None else None)
        if isinstance(run, Run):
            runs.append(run)
        else:
            found.absent.append(run)
    found.notes = sorted(set(found.notes))
    return found


def reference_folder(top: Path, label: str, seed: int) -> Path:
    """Return where the committed record of a run lies."""
    return top / slug(label) / f"seed={seed}"


def slug(label: str) -> str:
    """Turn a row label into a file name."""
    kept = "".join(
        character if character.isalnum() or character in ".=-" else "_" for character in label.lower()
    )
    return "_".join(part for part in kept.split("_") if part) or "row"


def last_line(text: Any) -> str:
    """Return the last line that says something."""
    lines = [line.strip() for line in str(text or "").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _examine(wanted: Expected, folder: Path, notes: list[str] | None) -> Run | Absent:
    def absent(reason: str) -> Absent:
        return Absent(wanted.label, wanted.seed, one_line(reason))

    if not (folder / RECORD).is_file():
        return absent("not trained")
    try:
        record = read_record(folder)
        evaluations = read_evaluations(folder)
        config = read_config(folder / CONFIG)
        learned = _plain(learning(config))
        seed = int(config.seed)
    except UsageError as error:
        return absent(f"damaged: {last_line(error).removeprefix(f'{folder}: ')}")
    except (KeyError, TypeError, ValueError, OmegaConfBaseException) as error:
        return absent(f"damaged: {CONFIG} is not of a run ({last_line(error)})")
    if record["status"] != "finished":
        why = last_line(record.get("error"))
        return absent(status(folder, record) + (f": {why}" if why else ""))
    reason = _misfit(_plain(wanted.learning), learned, notes)
    if seed != wanted.seed:
        reason = f"seed is {seed}"
    reason = reason or _shortened(learned, evaluations)
    if reason:
        return absent(reason)
    return Run(wanted.label, wanted.seed, folder, record, evaluations)


def _misfit(wanted: Any, found: Any, notes: list[str] | None) -> str | None:
    """Name the keys in which two configs differ, None when a report may take the one for the other."""
    one, other = flat(wanted), flat(found)
    differing = [key for key in one if key in other and one[key] != other[key]]
    alone = sorted(set(one) ^ set(other))
    if notes is not None and alone:
        notes.append(f"recorded before or after these config keys came or went: {', '.join(alone)}")
    if notes is None:
        differing += alone
    if not differing:
        return None
    parts = [f"{key} is {other.get(key, 'absent')}, not {one.get(key, 'absent')}" for key in differing[:3]]
    more = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
    return f"another config: {', '.join(parts)}{more}"


def _shortened(config: Mapping[str, Any], evaluations: Sequence[Mapping[str, Any]]) -> str | None:
    if not evaluations:
        return "no evaluation recorded"
    last = evaluations[-1]
    budgets = [("episodes", config.get("total_episodes")), ("timesteps", config.get("total_timesteps"))]
    trains = registry.algo(str(config["algo"]["name"])).trains
    if trains and not any(budget is not None and last.get(key, 0) >= budget for key, budget in budgets):
        done = ", ".join(
            f"{last.get(key)} of {budget} {key}" for key, budget in budgets if budget is not None
        )
        return f"shortened: last evaluation after {done}"
    needed = config["evaluation"]["episodes"]
    fewest = min(int(row.get("n", 0)) for row in evaluations)
    return f"shortened: {fewest} of {needed} evaluation episodes" if fewest < needed else None


def flat(node: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested keys as dotted ones."""
    found: dict[str, Any] = {}
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            found.update(flat(value, f"{prefix}{key}."))
        else:
            found[f"{prefix}{key}"] = value
    return found


def _plain(node: Mapping[str, Any]) -> dict[str, Any]:
    plain = json.loads(json.dumps(node))
    assert isinstance(plain, dict)
    return plain


def curves(runs: Sequence[Run], metric: str, x: str = "episodes") -> tuple[Array, Array]:
    """Return one curve per run on a common grid.

    Runs that were evaluated at other places than the first one are interpolated linearly onto its places, as
    far as all of them reach.

    :param metric: key of an evaluation row
    :param x: key of an evaluation row to draw over
    :return: ``(n_points,)`` and ``(n_runs, n_points)``; runs without the metric are left out
    """
    found = []
    for run in runs:
        rows = [row for row in run.evaluations if row.get(metric) is not None]
        if rows:
            found.append(
                (np.array([float(row[x]) for row in rows]), np.array([float(row[metric]) for row in rows]))
            )
    if not found:
        return np.empty(0), np.empty((0, 0))
    grid = found[0][0]
    if any(not np.array_equal(places, grid) for places, _ in found):
        grid = grid[grid <= min(places[-1] for places, _ in found)]
    return grid, np.stack([np.interp(grid, places, values) for places, values in found])


def period_curves(runs: Sequence[Run], metric: str, x: str, source: str) -> tuple[Array, Array]:
    """Return one curve per run over the parts of one episode, e.g. the months of a year.

    :param source: ``first_episode``: of training; ``evaluation``: of the last one
    :return: ``(n_parts,)`` and ``(n_runs, n_parts)``; runs without that episode are left out
    """
    found = []
    for run in runs:
        where = run.evaluations[-1] if source == "evaluation" else run.record.get(source)
        parts = (where or {}).get("periods") or []
        if parts and all(key in part for part in parts for key in (x, metric)):
            found.append(([float(part[x]) for part in parts], [float(part[metric]) for part in parts]))
    if not found:
        return np.empty(0), np.empty((0, 0))
    shortest = min(len(places) for places, _ in found)
    return np.array(found[0][0][:shortest]), np.array([values[:shortest] for _, values in found])
