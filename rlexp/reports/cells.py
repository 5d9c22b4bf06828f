"""The numbers of a table: one cell per row and column, differences between rows, verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlexp import stats
from rlexp.reports.records import Collection, Run, curves
from rlexp.reports.sweep_file import CatchUp, Column, Pair, Row, Sweep
from rlexp.stats import UNKNOWN, Interval

INSIDE, BETTER, WORSE, BEYOND = "inside", "better", "worse", "beyond the budget, as in the paper"


@dataclass(frozen=True)
class Cell:
    """One measure of one row, in the column's unit.

    :param expected: seeds that the sweep lists
    :param seeds: seeds found, in order
    :param values: one per seed found; inf where a threshold was not reached
    :param mean: mean over seeds; for a threshold, where the mean curve reaches it
    :param limit: last training episode measured; what "not reached" refers to
    """

    row: Row
    column: Column
    expected: int
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    mean: float
    std: float
    mean_interval: Interval
    iqm: float
    iqm_interval: Interval
    limit: float
    paper: tuple[float, float | None] | None
    verdict: str

    @property
    def n(self) -> int:
        """Number of seeds found."""
        return len(self.values)

    @property
    def complete(self) -> bool:
        """Whether every seed of the sweep is there."""
        return self.n == self.expected


@dataclass(frozen=True)
class Difference:
    """``of`` minus ``minus`` in one column, in its unit.

    :param improvement: probability that a seed of ``of`` is better than one of ``minus``
    """

    of: str
    minus: str
    column: Column
    value: float
    interval: Interval
    improvement: float


@dataclass(frozen=True)
class Sensitivity:
    """How far apart two mean curves lie on average, and how much less than those of the first pair."""

    pair: Pair
    gap: float
    less: float
    less_interval: Interval


@dataclass(frozen=True)
class Caught:
    """Where one row's mean curve reaches another's last score, ``at``, and where that row itself first does."""

    pair: CatchUp
    level: float
    at: float
    own: float
    limit: float
    share_interval: Interval

    @property
    def share(self) -> float:
        """``at`` as a share of ``own``."""
        return self.at / self.own


@dataclass(frozen=True)
class Table:
    """Everything that a table prints."""

    sweep: Sweep
    cells: tuple[tuple[Cell, ...], ...]
    differences: tuple[Difference, ...]
    sensitivity: tuple[Sensitivity, ...]
    caught: tuple[Caught, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether no cell lacks a seed."""
        return all(cell.complete for line in self.cells for cell in line)


def build(sweep: Sweep, found: Collection) -> Table:
    """Compute every number of a sweep's table."""
    cells = tuple(tuple(_cell(sweep, row, column, found) for column in sweep.columns) for row in sweep.rows)
    by_name = {(cell.row.label, cell.column.name): cell for line in cells for cell in line}
    differences = tuple(
        _difference(by_name[contrast.of, name], by_name[contrast.minus, name], found)
        for contrast in sweep.contrasts
        for name in contrast.columns
    )
    caught = tuple(_caught(pair, found) for pair in sweep.catch_up)
    return Table(sweep, cells, differences, _sensitivity(sweep.sensitivity, found), caught)


def _cell(sweep: Sweep, row: Row, column: Column, found: Collection) -> Cell:
    runs = found.runs.get(row.label, [])
    pairs = [(run.seed, value) for run in runs if (value := _value(run, column)) is not None]
    values = [value for _, value in pairs]
    mean, spread, interval = stats.mean(values), stats.std(values), stats.mean_interval(values)
    iqm, iqm_interval = stats.iqm(values), stats.iqm_interval(values)
    x, stacked = curves(runs, column.metric) if column.of == "evaluation" else (np.empty(0), np.empty((0, 0)))
    if column.until is not None:
        mean, interval = stats.mean_curve_crossing(x, stacked, column.until)
        spread = stats.std([value for value in values if math.isfinite(value)])
    if column.relative_to is not None:
        base_runs = found.runs.get(column.relative_to, [])
        base = [value for run in base_runs if (value := _value(run, column)) is not None]
        scale = stats.mean(base)
        itself = row.label == column.relative_to
        interval = UNKNOWN if itself else stats.ratio_interval(values, base)
        values = [value / scale for value in values]
        mean, spread, iqm = mean / scale, spread / scale, iqm / scale
        iqm_interval = UNKNOWN
    paper = row.paper.get(column.name)
    limit = float(x[-1]) if len(x) else math.nan
    return Cell(
        row=row,
        column=column,
        expected=found.expected.get(row.label, len(sweep.seeds)),
        seeds=tuple(seed for seed, _ in pairs),
        values=tuple(values),
        mean=mean,
        std=spread,
        mean_interval=interval,
        iqm=iqm,
        iqm_interval=iqm_interval,
        limit=limit,
        paper=paper,
        verdict=_verdict(column, mean, interval, limit, paper),
    )


def _value(run: Run, column: Column) -> float | None:
    if column.of == "record":
        value: Any = run.record
        for part in column.metric.split("."):  # first_episode.power_kw
            value = value.get(part) if isinstance(value, Mapping) else None
        return None if value is None else float(value) * column.factor
    rows = [row for row in run.evaluations if row.get(column.metric) is not None]
    if not rows:
        return None
    if column.until is not None:
        x, y = curves([run], column.metric)
        return float(stats.crossing(x, y[0], column.until))
    if column.average:
        return float(np.mean([row[column.metric] for row in rows])) * column.factor
    if column.at is not None:
        # A run is measured at the first safe moment after its N-th episode: perhaps a few episodes later.
        rows = [row for row in rows if column.at <= row["episodes"] < 1.25 * column.at]
        return float(rows[0][column.metric]) * column.factor if rows else None
    return float(np.mean([row[column.metric] for row in rows[-column.last :]])) * column.factor


def _verdict(
    column: Column, mean: float, interval: Interval, limit: float, paper: tuple[float, float | None] | None
) -> str:
    if paper is None or not column.judged or not interval.known:
        return ""
    if column.until is not None and math.isinf(mean) and paper[0] > limit:
        return BEYOND
    if paper[0] in interval:
        return INSIDE
    ours_is_higher = mean > paper[0]
    return BETTER if ours_is_higher == (column.better == "higher") else WORSE


def _difference(first: Cell, second: Cell, found: Collection) -> Difference:
    a, b = first.values, second.values
    improvement = stats.probability_of_improvement(a, b)
    if first.column.better == "lower":
        improvement = 1.0 - improvement
    value = first.mean - second.mean
    interval = stats.difference_interval(a, b)
    if first.column.until is not None:  # the crossing of a mean curve is no mean over seeds
        x, y = (curves(found.runs.get(cell.row.label, []), cell.column.metric) for cell in (first, second))
        interval = stats.crossing_difference_interval(x, y, first.column.until)
    return Difference(first.row.label, second.row.label, first.column, value, interval, improvement)


def _caught(pair: CatchUp, found: Collection) -> Caught:
    both = (curves(found.runs.get(label, []), pair.metric, pair.x) for label in (pair.of, pair.reaches))
    first, second = ((x, stats.trailing_mean(stacked, pair.last)) for x, stacked in both)
    level, at, own, within = stats.catch_up(first, second)
    return Caught(pair, level, at, own, float(first[0][-1]) if len(first[0]) else math.nan, within)


def _sensitivity(pairs: Sequence[Pair], found: Collection) -> tuple[Sensitivity, ...]:
    measured = []
    stacks = []
    for pair in pairs:
        both = [curves(found.runs.get(label, []), pair.metric) for label in pair.rows]
        points = min(len(x) for x, _ in both)
        stacks.append(
            tuple(
                stacked[:, :points] * 100.0 if pair.unit == "%" else stacked[:, :points]
                for _, stacked in both
            )
        )
    for pair, stack in zip(pairs, stacks, strict=True):
        enough = all(one.size for one in [*stack, *stacks[0]])
        gap = stats.mean_gap(stack[0], stack[1]) if enough else math.nan
        less, interval = math.nan, UNKNOWN
        if enough and pair is not pairs[0]:
            less, interval = stats.gap_difference([(stacks[0][0], stacks[0][1]), (stack[0], stack[1])])
        measured.append(Sensitivity(pair, gap, less, interval))
    return tuple(measured)
