"""The numbers of a table: one metric per row and column, differences between rows, verdicts.

Per-seed values come out of data frames; point estimates and bootstrap intervals are those of :mod:`rlexp.stats`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rlexp import stats
from rlexp.reports.definition import Column, CurvePair, EfficiencyPair, Row, Sweep
from rlexp.reports.load import LoadedRuns, curves
from rlexp.stats import UNKNOWN, Interval

INSIDE, BETTER, WORSE, BEYOND = "inside", "better", "worse", "beyond the budget, as in the paper"


@dataclass(frozen=True)
class Metric:
    """One column of one row, in the column's unit.

    :param expected: seeds that the sweep lists
    :param seeds: seeds found, in order
    :param values: one per seed found; inf where a threshold was not reached
    :param mean: mean over seeds; for a threshold, where the mean curve reaches it
    :param limit: last training episode measured; what "not reached" refers to
    :param paper: published mean and standard deviation
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

    pair: CurvePair
    gap: float
    less: float
    less_interval: Interval


@dataclass(frozen=True)
class SampleEfficiency:
    """Where one row's mean curve reaches another's last score, ``at``, and where that row itself first does."""

    pair: EfficiencyPair
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
    """Everything that a table prints.

    :param metrics: one line per row of the sweep, one metric per column
    """

    sweep: Sweep
    metrics: tuple[tuple[Metric, ...], ...]
    differences: tuple[Difference, ...]
    sensitivity: tuple[Sensitivity, ...]
    sample_efficiency: tuple[SampleEfficiency, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether no metric lacks a seed."""
        return all(metric.complete for line in self.metrics for metric in line)


def build(sweep: Sweep, loaded: LoadedRuns) -> Table:
    """Compute every number of a sweep's table.

    :param sweep: the sweep file
    :param loaded: runs of the sweep
    """
    metrics = tuple(
        tuple(_metric(sweep, row, column, loaded) for column in sweep.columns) for row in sweep.rows
    )
    by_name = {(metric.row.label, metric.column.name): metric for line in metrics for metric in line}
    differences = tuple(
        _difference(by_name[contrast.of, name], by_name[contrast.minus, name], loaded)
        for contrast in sweep.contrasts
        for name in contrast.columns
    )
    efficiency = tuple(_sample_efficiency(pair, loaded) for pair in sweep.sample_efficiency)
    return Table(sweep, metrics, differences, _sensitivity(sweep.sensitivity, loaded), efficiency)


def per_seed(loaded: LoadedRuns, label: str, column: Column) -> pd.Series:
    """Return one value per seed in the column's unit, indexed by seed; runs without the metric are left out.

    :param loaded: runs of the sweep
    :param label: label of a row
    :param column: which metric, and its unit
    """
    frame = loaded.records if column.source == "record" else loaded.evaluations
    rows = frame[frame["label"] == label].reindex(columns=["seed", "episodes", column.metric])
    rows = (
        rows.set_axis(["seed", "episodes", "value"], axis=1).dropna(subset="value").astype({"value": float})
    )
    if column.at is not None:
        # A run is measured at the first rollout boundary after its N-th episode: perhaps a few episodes later.
        rows = rows[rows["episodes"].between(column.at, 1.25 * column.at, inclusive="left")]
        rows = rows.drop_duplicates("seed")
    runs = rows.groupby("seed", sort=False)
    if column.threshold is not None:
        return pd.Series(
            {
                seed: float(stats.crossing(run["episodes"], run["value"], column.threshold))
                for seed, run in runs
            },
            dtype=float,
        )
    if not column.average:
        runs = runs.tail(column.last).groupby("seed", sort=False)
    # NumPy's sum and not that of pandas, which rounds differently.
    means: pd.Series = runs["value"].agg(stats.mean).astype(float) * column.factor
    return means


def _metric(sweep: Sweep, row: Row, column: Column, loaded: LoadedRuns) -> Metric:
    found = per_seed(loaded, row.label, column)
    values = found.to_numpy()
    mean, std, interval = stats.mean(values), stats.std(values), stats.mean_interval(values)
    iqm, iqm_interval = stats.iqm(values), stats.iqm_interval(values)
    x, stacked = np.empty(0), np.empty((0, 0))
    if column.source == "evaluation":
        x, stacked = curves(loaded, row.label, column.metric)
    if column.threshold is not None:
        mean, interval = stats.mean_curve_crossing(x, stacked, column.threshold)
        std = stats.std(values[np.isfinite(values)])
    if column.relative_to is not None:
        base = per_seed(loaded, column.relative_to, column).to_numpy()
        scale = stats.mean(base)
        itself = row.label == column.relative_to
        interval = UNKNOWN if itself else stats.ratio_interval(values, base)
        values, mean, std, iqm = values / scale, mean / scale, std / scale, iqm / scale
        iqm_interval = UNKNOWN
    paper = row.paper.get(column.name)
    limit = float(x[-1]) if len(x) else math.nan
    return Metric(
        row=row,
        column=column,
        expected=loaded.expected.get(row.label, len(sweep.seeds)),
        seeds=tuple(found.index),
        values=tuple(values.tolist()),
        mean=mean,
        std=std,
        mean_interval=interval,
        iqm=iqm,
        iqm_interval=iqm_interval,
        limit=limit,
        paper=paper,
        verdict=_verdict(column, mean, interval, limit, paper),
    )


def _verdict(
    column: Column, mean: float, interval: Interval, limit: float, paper: tuple[float, float | None] | None
) -> str:
    if paper is None or not column.comparable or not interval.known:
        return ""
    if column.threshold is not None and math.isinf(mean) and paper[0] > limit:
        return BEYOND
    if paper[0] in interval:
        return INSIDE
    ours_is_higher = mean > paper[0]
    return BETTER if ours_is_higher == (column.better == "higher") else WORSE


def _difference(first: Metric, second: Metric, loaded: LoadedRuns) -> Difference:
    a, b = first.values, second.values
    improvement = stats.probability_of_improvement(a, b)
    if first.column.better == "lower":
        improvement = 1.0 - improvement
    value = first.mean - second.mean
    interval = stats.difference_interval(a, b)
    if first.column.threshold is not None:  # the crossing of a mean curve is not a mean over seeds
        x, y = (curves(loaded, metric.row.label, metric.column.metric) for metric in (first, second))
        interval = stats.crossing_difference_interval(x, y, first.column.threshold)
    return Difference(first.row.label, second.row.label, first.column, value, interval, improvement)


def _sample_efficiency(pair: EfficiencyPair, loaded: LoadedRuns) -> SampleEfficiency:
    both = (curves(loaded, label, pair.metric, pair.x) for label in (pair.of, pair.reaches))
    first, second = ((x, stats.trailing_mean(stacked, pair.last)) for x, stacked in both)
    level, at, own, within = stats.sample_efficiency(first, second)
    return SampleEfficiency(pair, level, at, own, float(first[0][-1]) if len(first[0]) else math.nan, within)


def _sensitivity(pairs: Sequence[CurvePair], loaded: LoadedRuns) -> tuple[Sensitivity, ...]:
    stacks = []
    for pair in pairs:
        both = [curves(loaded, label, pair.metric) for label in pair.rows]
        points = min(len(x) for x, _ in both)
        factor = 100.0 if pair.unit == "%" else 1.0
        stacks.append(tuple(stacked[:, :points] * factor for _, stacked in both))
    measured = []
    for pair, stack in zip(pairs, stacks, strict=True):
        enough = all(one.size for one in [*stack, *stacks[0]])
        gap = stats.mean_gap(stack[0], stack[1]) if enough else math.nan
        less, interval = math.nan, UNKNOWN
        if enough and pair is not pairs[0]:
            less, interval = stats.gap_difference([(stacks[0][0], stacks[0][1]), (stack[0], stack[1])])
        measured.append(Sensitivity(pair, gap, less, interval))
    return tuple(measured)
