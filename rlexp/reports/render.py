"""A table as Markdown, LaTeX and data frame.

Markdown and LaTeX are written here: pandas needs tabulate and jinja2 for them, which rlexp would need for nothing else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pandas as pd

from rlexp.reports import aggregate, text
from rlexp.reports.definition import Aggregate, Column
from rlexp.reports.load import MissingRun
from rlexp.reports.metrics import Metric, Table

Lines = Sequence[Sequence[Metric]]

_COLUMNS = (
    *("row", "column", "unit", "n", "expected", "mean", "std", "mean_low", "mean_high"),
    *("iqm", "iqm_low", "iqm_high", "paper", "paper_std", "verdict", "seeds", "values"),
)


def select(table: Table, columns: Sequence[Column]) -> list[list[Metric]]:
    """Return the metrics of some columns.

    :param table: numbers of a sweep
    :param columns: columns to return
    """
    names = {column.name for column in columns}
    return [[metric for metric in line if metric.column.name in names] for line in table.metrics]


def markdown(
    table: Table,
    columns: tuple[Column, ...],
    protocol: tuple[str, ...],
    missing: Sequence[MissingRun],
    image: str | None = None,
    scores: Sequence[aggregate.AggregateScore] = (),
) -> str:
    """Write a table with everything that a reader needs to judge it.

    :param table: numbers of a sweep
    :param columns: those to show
    :param protocol: sentences on seeds and evaluation
    :param missing: runs that could not enter
    :param image: file name of a figure to embed
    :param scores: of every setting, where the sweep compares settings across tasks
    """
    metrics = select(table, columns)
    lines = [f"# {table.sweep.title}", "", *_compact(metrics, columns), ""]
    if image:
        lines += [f"![{table.sweep.title}]({image})", ""]
    lines += ["## Every cell", "", *_details(metrics), ""]
    lines += contrasts(table, columns)
    if scores and table.sweep.aggregate is not None:
        lines += ["## Across tasks", "", *across_tasks(table.sweep.aggregate, scores), ""]
    lines += ["## Every seed", "", *_seeds(metrics), ""]
    if missing:
        lines += ["## Missing", "", *list_missing(missing), ""]
    lines += ["## Definitions", "", *(f"- {line}" for line in text.definitions(table, protocol, columns)), ""]
    return "\n".join(lines)


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Write a Markdown table; every column but the first is right-aligned.

    :param header: one text per column
    :param rows: one text per column and row
    """
    lines = [
        "| " + " | ".join(header) + " |",
        "| " + " | ".join(["---", *["---:"] * (len(header) - 1)]) + " |",
    ]
    return [*lines, *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)]


def list_missing(missing: Sequence[MissingRun]) -> list[str]:
    """List the runs that could not enter, one line each.

    :param missing: runs that could not enter
    """
    return [f"- {one.label}, seed {one.seed}: {one.reason}" for one in missing]


def least_found(line: Sequence[Metric]) -> str:
    """Write n found of n expected for a row: that of its poorest metric.

    :param line: metrics of one row
    """
    poorest = min(line, key=lambda metric: metric.n)
    return text.found(poorest)


def _compact(metrics: Lines, columns: Sequence[Column]) -> list[str]:
    rows = []
    for line in metrics:
        rows.append([f"**{line[0].row.label}**", least_found(line), *(text.ours(metric) for metric in line)])
        if any(metric.paper for metric in line):
            rows.append([f"*{line[0].row.label}, paper*", "", *(text.published(metric) for metric in line)])
    return grid(["", "n", *(text.heading(column) for column in columns)], rows)


def _details(metrics: Lines) -> list[str]:
    rows = []
    for line in metrics:
        for metric in line:
            digits, limit = metric.column.digits, metric.limit
            rows.append(
                [
                    metric.row.label,
                    text.heading(metric.column),
                    text.found(metric) + ("" if metric.complete else " incomplete"),
                    text.ours(metric),
                    text.interval(metric.mean_interval, digits, limit),
                    text.number(metric.iqm, digits, limit),
                    text.interval(metric.iqm_interval, digits, limit),
                    text.published(metric),
                    metric.verdict,
                ]
            )
    header = [
        "",
        "measure",
        "n",
        "mean ± s.d.",
        "95 % of the mean",
        "IQM",
        "95 % of the IQM",
        "paper",
        "verdict",
    ]
    return grid(header, rows)


def contrasts(table: Table, columns: Sequence[Column]) -> list[str]:
    """Write the differences between rows in some columns, and the sensitivities.

    :param table: numbers of a sweep
    :param columns: columns to show
    """
    names = {column.name for column in columns}
    lines: list[str] = []
    rows = [
        [
            f"{one.of} − {one.minus}",
            text.heading(one.column),
            text.number(one.value, one.column.digits, sign=True),
            text.interval(one.interval, one.column.digits, sign=True),
            text.number(one.improvement, 2),
        ]
        for one in table.differences
        if one.column.name in names
    ]
    if rows:
        header = ["", "measure", "difference", "95 %", "P(a seed of the first is better)"]
        lines += ["## Differences", "", *grid(header, rows), ""]
    if table.sensitivity and not (columns and all(column.volatile for column in columns)):
        lines += ["## Sensitivity", "", *sensitivity(table), ""]
    if table.sample_efficiency and not (columns and all(column.volatile for column in columns)):
        lines += ["## How soon the score of another is reached", "", *sample_efficiency(table), ""]
    return lines


def across_tasks(wanted: Aggregate, scores: Sequence[aggregate.AggregateScore]) -> list[str]:
    """Write how every setting compares with the baseline over all tasks.

    :param wanted: settings, baseline and environments to compare
    :param scores: of the settings
    """
    return [*grid(aggregate.header(), aggregate.rows(wanted, scores)), "", aggregate.note(wanted)]


def sample_efficiency(table: Table) -> list[str]:
    """Write how soon the mean curves of some rows reach the last score of others.

    :param table: numbers of a sweep
    """
    rows = [
        [
            f"{one.pair.of} / {one.pair.reaches}",
            text.number(one.level, one.pair.digits),
            text.number(one.at, 0, one.limit),
            text.number(one.own, 0),
            text.number(one.share, 2),
            text.interval(one.share_interval, 2),
        ]
        for one in table.sample_efficiency
    ]
    unit = table.sample_efficiency[0].pair.x
    header = [
        "",
        "last score of the second",
        f"{unit} of the first",
        f"{unit} of the second",
        "share",
        "95 %",
    ]
    note = (
        "Where each mean curve first reaches that score, interpolated between evaluations; a curve above it at "
        "the first evaluation counts as reaching it there, so that small shares are upper bounds."
    )
    several = sorted({one.pair.last for one in table.sample_efficiency} - {1})
    if several:
        note += f" Every point is the mean of the last {several[0]} evaluations."
    return [*grid(header, rows), "", note]


def sensitivity(table: Table) -> list[str]:
    """Write how far apart the curves of the named pairs lie.

    :param table: numbers of a sweep
    """
    first = table.sensitivity[0].pair.label
    rows = [
        [
            one.pair.label,
            f"{one.pair.rows[0]} / {one.pair.rows[1]}",
            text.number(one.gap, 1),
            "" if one is table.sensitivity[0] else text.number(one.less, 1, sign=True),
            "" if one is table.sensitivity[0] else text.interval(one.less_interval, 1, sign=True),
        ]
        for one in table.sensitivity
    ]
    note = (
        "Gap: distance between the two settings' mean curves, averaged over all evaluations (in the "
        "measure's unit); never negative, so that it is a little above zero even between equal settings."
    )
    header = ["", "settings", "gap", f"gap of {first} minus this one", "95 %"]
    return [*grid(header, rows), "", note]


def _seeds(metrics: Lines) -> list[str]:
    rows = [
        [
            metric.row.label,
            text.heading(metric.column),
            "  ".join(_one_seed(metric, value) for value in metric.values),
        ]
        for line in metrics
        for metric in line
    ]
    return grid(["", "measure", "seeds in order"], rows)


def _one_seed(metric: Metric, value: float) -> str:
    return text.number(value, metric.column.digits, metric.limit)


def latex(table: Table, columns: tuple[Column, ...]) -> str:
    """Write the table as a paper prints it (needs the package booktabs).

    :param table: numbers of a sweep
    :param columns: columns to show
    """
    metrics = select(table, columns)
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{tabular}{l" + "r" * (len(columns) + 1) + "}",
        "\\toprule",
        " & ".join(["", "n", *(_escape(text.heading(column)) for column in columns)]) + " \\\\",
        "\\midrule",
    ]
    for line in metrics:
        label = _escape(line[0].row.label)
        lines.append(
            " & ".join([label, least_found(line), *(_escape(text.ours(metric)) for metric in line)]) + " \\\\"
        )
        if any(metric.paper for metric in line):
            paper = (_escape(text.published(metric)) for metric in line)
            lines.append(" & ".join(["\\quad paper", "", *paper]) + " \\\\")
    lines += ["\\bottomrule", "\\end{tabular}", ""]
    return "\n".join(lines)


def _escape(text: str) -> str:
    for plain, escaped in (
        ("\\", "\\textbackslash{}"),
        ("%", "\\%"),
        ("_", "\\_"),
        ("&", "\\&"),
        ("#", "\\#"),
        ("±", "$\\pm$"),
        ("∞", "$\\infty$"),
        ("> ", "$>$ "),
        ("–", "--"),
        ("−", "--"),
    ):
        text = text.replace(plain, escaped)
    return text


def frame(table: Table, columns: Sequence[Column]) -> pd.DataFrame:
    """Return one row per metric, in the column's unit.

    :param table: numbers of a sweep
    :param columns: columns to show
    """
    rows = []
    for metric in itertools.chain.from_iterable(select(table, columns)):
        paper = metric.paper or (None, None)
        values = (
            *(metric.row.label, metric.column.name, metric.column.unit, metric.n, metric.expected),
            *(metric.mean, metric.std, metric.mean_interval.low, metric.mean_interval.high),
            *(metric.iqm, metric.iqm_interval.low, metric.iqm_interval.high),
            *(*paper, metric.verdict, " ".join(map(str, metric.seeds))),
            " ".join("" if math.isnan(value) else f"{value:.10g}" for value in metric.values),
        )
        rows.append(values)
    return pd.DataFrame(rows, columns=_COLUMNS)
