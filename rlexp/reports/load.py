"""Loads run folders into data frames: one row per run and one per evaluation, and why the others are missing.

What a run must look like to enter (:func:`_incompatibility`, :func:`_shortened`) stays by hand:
these are rules of rlexp.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from omegaconf.errors import OmegaConfBaseException

from rlexp import registry
from rlexp.config.paths import reported
from rlexp.errors import UsageError
from rlexp.reports.definition import Expected, last_line, slug
from rlexp.runs.folder import CONFIG, RECORD, read_evaluations, read_record, status
from rlexp.runs.stored import read_config
from rlexp.system.terminal import one_line

Array = NDArray[np.float64]
Curves = tuple[Array, Array]


@dataclass(frozen=True)
class MissingRun:
    """A run that cannot enter a report, and why."""

    label: str
    seed: int
    reason: str


@dataclass
class LoadedRuns:
    """The runs that a report is made of, in the order in which they were expected.

    :param records: one row per run: ``label``, ``seed``, ``folder`` and the keys of ``record.json``, nested ones dotted
    :param evaluations: one row per evaluation: ``label``, ``seed`` and the keys of ``evaluations.jsonl``
    :param expected: number of runs that must exist, by label
    :param notes: differences that were tolerated
    """

    records: pd.DataFrame
    evaluations: pd.DataFrame
    missing: list[MissingRun] = field(default_factory=list)
    expected: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def load_runs(expected: Iterable[Expected], reference: Path | None = None) -> LoadedRuns:
    """Load every expected run that is there, finished and of the config that is wanted.

    :param expected: what must exist
    :param reference: folder of committed records to read instead of the run folders; there, config keys that
        only one side knows are tolerated and named, since records outlive the keys of the day they were made
    """
    records: list[dict[str, Any]] = []
    evaluations: list[dict[str, Any]] = []
    missing: list[MissingRun] = []
    counts: dict[str, int] = {}
    notes: set[str] = set()
    for wanted in expected:
        counts[wanted.label] = counts.get(wanted.label, 0) + 1
        folder = (
            wanted.folder if reference is None else reference_folder(reference, wanted.label, wanted.seed)
        )
        try:
            record, rows = _read(wanted, folder, None if reference is None else notes)
        except _Unusable as reason:
            missing.append(MissingRun(wanted.label, wanted.seed, one_line(reason)))
            continue
        key = {"label": wanted.label, "seed": wanted.seed}
        records.append({**record, **key, "folder": folder})
        evaluations += [{**row, **key} for row in rows]
    return LoadedRuns(*frames(records, evaluations), missing, counts, sorted(notes))


def frames(
    records: list[dict[str, Any]], evaluations: list[dict[str, Any]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the two frames of :class:`LoadedRuns`; ``label`` and ``seed`` are columns even where there is no row.

    :param records: of the runs, with ``label`` and ``seed``
    :param evaluations: rows of all runs, with ``label`` and ``seed``
    """
    keys = pd.DataFrame(columns=["label", "seed"])
    return (
        pd.json_normalize(records) if records else keys,
        pd.DataFrame(evaluations) if evaluations else keys,
    )


def reference_folder(top: Path, label: str, seed: int) -> Path:
    """Return where the committed record of a run lies.

    :param top: folder of all committed records
    :param label: label of a row
    :param seed: of the run
    """
    return top / slug(label) / f"seed={seed}"


class _Unusable(Exception):
    """A run that cannot enter a report; the message says why."""


def _read(
    wanted: Expected, folder: Path, notes: set[str] | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return record and evaluations of a run.

    :param notes: takes what was tolerated; None: nothing is
    :raises _Unusable: when the run is not what was expected
    """
    if not (folder / RECORD).is_file():
        raise _Unusable("not trained")
    try:
        record = read_record(folder)
        evaluations = read_evaluations(folder)
        config = read_config(folder / CONFIG)
        learned = _plain(reported(config))
        seed = int(config.seed)
    except UsageError as error:
        raise _Unusable(f"damaged: {last_line(error).removeprefix(f'{folder}: ')}") from error
    except (KeyError, TypeError, ValueError, OmegaConfBaseException) as error:
        raise _Unusable(f"damaged: {CONFIG} is not of a run ({last_line(error)})") from error
    if record["status"] != "finished":
        why = last_line(record.get("error"))
        raise _Unusable(status(folder, record) + (f": {why}" if why else ""))
    reason = _incompatibility(_plain(wanted.reported), learned, notes)
    if seed != wanted.seed:
        reason = f"seed is {seed}"
    reason = reason or _shortened(learned, evaluations)
    if reason:
        raise _Unusable(reason)
    return record, evaluations


def _incompatibility(wanted: Any, found: Any, notes: set[str] | None) -> str | None:
    """Name the keys in which two configs differ, None when a report may take the one for the other."""
    one, other = flat(wanted), flat(found)
    differing = [key for key in one if key in other and one[key] != other[key]]
    alone = sorted(set(one) ^ set(other))
    if notes is not None and alone:
        notes.add(f"recorded before or after these config keys came or went: {', '.join(alone)}")
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
    """Return nested keys as dotted ones.

    :param node: nested containers
    :param prefix: of every key
    """
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


def curves(loaded: LoadedRuns, label: str, metric: str, x: str = "episodes") -> Curves:
    """Return one curve per run on a common grid.

    Runs that were evaluated at other points than the first one are interpolated linearly onto its points, as
    far as all of them reach.

    :param loaded: runs of the sweep
    :param label: label of a row
    :param metric: key of an evaluation row
    :param x: key of an evaluation row to draw over
    :return: ``(n_points,)`` and ``(n_runs, n_points)``; runs without the metric are left out
    """
    rows = loaded.evaluations[loaded.evaluations["label"] == label].reindex(columns=["seed", x, metric])
    found = [run.to_numpy(float).T[1:] for _, run in rows.dropna().groupby("seed", sort=False)]
    if not found:
        return np.empty(0), np.empty((0, 0))
    grid = found[0][0]
    if any(not np.array_equal(points, grid) for points, _ in found):
        grid = grid[grid <= min(points[-1] for points, _ in found)]
    return grid, np.stack([np.interp(grid, points, values) for points, values in found])


def period_curves(loaded: LoadedRuns, label: str, metric: str, x: str, source: str) -> Curves:
    """Return one curve per run over the parts of one episode, e.g. the months of a year.

    :param loaded: runs of the sweep
    :param label: label of a row
    :param metric: key of a period
    :param x: key of a period to draw over
    :param source: ``first_episode``: of training; ``evaluation``: of the last one
    :return: ``(n_parts,)`` and ``(n_runs, n_parts)``; runs without that episode are left out
    """
    runs, column = loaded.records, f"{source}.periods"
    if source == "evaluation":
        runs, column = loaded.evaluations.drop_duplicates(["label", "seed"], keep="last"), "periods"
    episodes = runs[runs["label"] == label].reindex(columns=[column])[column].dropna()
    parts = [pd.DataFrame(one).reindex(columns=[x, metric]) for one in episodes]
    found = [one.to_numpy(float).T for one in parts if len(one) and one.notna().all(axis=None)]
    if not found:
        return np.empty(0), np.empty((0, 0))
    shortest = min(one.shape[1] for one in found)
    return found[0][0, :shortest], np.stack([one[1, :shortest] for one in found])
