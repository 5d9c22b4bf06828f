"""How numbers are written, the same way in every table."""

from __future__ import annotations

import math

import pandas as pd

from rlexp.reports.definition import Column
from rlexp.reports.metrics import Metric, Table
from rlexp.stats import BOOTSTRAP_SEED, CONFIDENCE, RESAMPLES, Interval

MISSING = "–"


def csv(frame: pd.DataFrame, digits: int = 10) -> str:
    """Write a data frame as CSV; what is not known stays empty.

    :param frame: to write
    :param digits: significant digits of floating-point numbers
    """
    return frame.to_csv(index=False, lineterminator="\n", float_format=f"%.{digits}g")


def number(value: float, digits: int, limit: float = math.nan, sign: bool = False) -> str:
    """Write a number.

    :param value: to write
    :param digits: after the decimal point
    :param limit: for inf: what lies beyond it was not measured
    :param sign: write a plus, too
    """
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        if math.isnan(limit):
            return "∞" if value > 0 else "-∞"
        return f"> {limit:.0f}"
    written = f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
    return written.replace("-", "") if float(written) == 0 else written


def mean_and_std(mean: float, std: float | None, digits: int, limit: float = math.nan) -> str:
    """Write ``mean ± standard deviation``, without the second where it is unknown.

    :param mean: over seeds
    :param std: over seeds; None: unknown
    :param digits: after the decimal point
    :param limit: for inf: what lies beyond it was not measured
    """
    first = number(mean, digits, limit)
    if std is None or math.isnan(std) or first == MISSING:
        return first
    return f"{first} ± {number(std, digits)}"


def interval(found: Interval, digits: int, limit: float = math.nan, sign: bool = False) -> str:
    """Write ``[low, high]``.

    :param found: low and high end
    :param digits: after the decimal point
    :param limit: for inf: what lies beyond it was not measured
    :param sign: write a plus, too
    """
    if not found.known or (math.isinf(found.low) and found.low == found.high):
        return MISSING
    return f"[{number(found.low, digits, limit, sign)}, {number(found.high, digits, limit, sign)}]"


def heading(column: Column) -> str:
    """Return a column's heading with its unit.

    :param column: of a table
    """
    return (
        f"{column.label} ({column.unit})" if column.unit and column.unit not in column.label else column.label
    )


def ours(metric: Metric) -> str:
    """Write a metric as papers do: mean ± standard deviation over seeds.

    :param metric: to write
    """
    # The spread of the seeds' own crossings belongs to another statistic than the mean curve's crossing.
    std = None if metric.column.threshold is not None else metric.std
    return mean_and_std(metric.mean, std, metric.column.digits, metric.limit)


def published(metric: Metric) -> str:
    """Write the paper's value, empty where it prints none.

    :param metric: to write
    """
    if metric.paper is None:
        return ""
    mean, std = metric.paper
    return str(mean) if std is None else f"{mean} ± {std}"


def found(metric: Metric) -> str:
    """Write ``n=7/10``.

    :param metric: to write
    """
    return f"{metric.n}/{metric.expected}"


def line_of_seeds(seeds: tuple[int, ...]) -> str:
    """Write seeds briefly: ``100-109``.

    :param seeds: in ascending order
    """
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-{seeds[-1]}"
    return ", ".join(str(seed) for seed in seeds)


def definitions(table: Table, protocol: tuple[str, ...], columns: tuple[Column, ...]) -> list[str]:
    """Return what stands under a table: how its numbers were made.

    :param table: numbers of a sweep
    :param protocol: sentences on seeds and evaluation
    :param columns: columns that are shown
    """
    percent = f"{CONFIDENCE * 100:.0f} %"
    lines = [
        *protocol,
        "±: standard deviation over seeds, divided by n - 1.",
        f"Intervals: {percent} percentile bootstrap over seeds, {RESAMPLES:,} resamples, generator seed "
        f"{BOOTSTRAP_SEED}; differences and ratios resample both rows independently.",
        "IQM: interquartile mean over seeds; a quarter of them, rounded down, is left out at each end.",
        "Verdict: whether the paper's mean lies inside the interval of our mean; outside it, whether we are "
        "better or worse.",
    ]
    for column in columns:
        if column.threshold is not None:
            level = f"{column.threshold:g}"
            lines.append(
                f"{column.label}: where the mean curve over seeds first reaches {level}, interpolated "
                "linearly between evaluations; a curve above it at the first evaluation crosses there. "
                "IQM and single seeds: each seed's own first crossing."
            )
    if any(column.relative_to for column in columns):
        lines.append(
            "Relative values are divided by the mean of the row named; no IQM interval is given for them."
        )
    return [*lines, *table.sweep.notes]
