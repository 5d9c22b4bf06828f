"""A table as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rlexp.reports import across, text
from rlexp.reports.cells import Cell, Table
from rlexp.reports.records import Absent
from rlexp.reports.sweep_file import Across, Column

Cells = Sequence[Sequence[Cell]]

_CSV_HEADER = (
    *("row", "column", "unit", "n", "expected", "mean", "std", "mean_low", "mean_high"),
    *("iqm", "iqm_low", "iqm_high", "paper", "paper_std", "verdict", "seeds", "values"),
)


def select(table: Table, columns: Sequence[Column]) -> list[list[Cell]]:
    """Return the cells of some columns."""
    names = {column.name for column in columns}
    return [[cell for cell in line if cell.column.name in names] for line in table.cells]


def markdown(
    table: Table,
    columns: tuple[Column, ...],
    protocol: tuple[str, ...],
    absent: Sequence[Absent],
    picture: str | None = None,
    standings: Sequence[across.Standing] = (),
) -> str:
    """Write a table with everything that a reader needs to judge it.

    :param columns: those to show
    :param protocol: sentences on seeds and evaluation
    :param absent: runs that could not enter
    :param picture: file name of a figure to embed
    :param standings: of every setting, where the sweep compares settings across tasks
    """
    cells = select(table, columns)
    lines = [f"# {table.sweep.title}", "", *_compact(cells, columns), ""]
    if picture:
        lines += [f"![{table.sweep.title}]({picture})", ""]
    lines += ["## Every cell", "", *_details(cells), ""]
    lines += contrasts(table, columns)
    if standings and table.sweep.across is not None:
        lines += ["## Across tasks", "", *across_tasks(table.sweep.across, standings), ""]
    lines += ["## Every seed", "", *_seeds(cells), ""]
    if absent:
        lines += ["## Missing", "", *missing(absent), ""]
    lines += ["## Definitions", "", *(f"- {line}" for line in text.definitions(table, protocol, columns)), ""]
    return "\n".join(lines)


def grid(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Write a Markdown table; every column but the first is right-aligned."""
    lines = [
        "| " + " | ".join(header) + " |",
        "| " + " | ".join(["---", *["---:"] * (len(header) - 1)]) + " |",
    ]
    return [*lines, *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)]


def missing(absent: Sequence[Absent]) -> list[str]:
    """List the runs that could not enter, one line each."""
    return [f"- {one.label}, seed {one.seed}: {one.reason}" for one in absent]


def least_found(line: Sequence[Cell]) -> str:
    """Write n found of n expected for a row: that of its poorest cell."""
    poorest = min(line, key=lambda cell: cell.n)
    return text.found(poorest)


def _compact(cells: Cells, columns: Sequence[Column]) -> list[str]:
    rows = []
    for line in cells:
        rows.append([f"**{line[0].row.label}**", least_found(line), *(text.ours(cell) for cell in line)])
        if any(cell.paper for cell in line):
            rows.append([f"*{line[0].row.label}, paper*", "", *(text.published(cell) for cell in line)])
    return grid(["", "n", *(text.heading(column) for column in columns)], rows)


def _details(cells: Cells) -> list[str]:
    rows = []
    for line in cells:
        for cell in line:
            digits, limit = cell.column.digits, cell.limit
            rows.append(
                [
                    cell.row.label,
                    text.heading(cell.column),
                    text.found(cell) + ("" if cell.complete else " incomplete"),
                    text.ours(cell),
                    text.interval(cell.mean_interval, digits, limit),
                    text.number(cell.iqm, digits, limit),
                    text.interval(cell.iqm_interval, digits, limit),
                    text.published(cell),
                    cell.verdict,
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
    """Write the differences between rows in some columns, and the sensitivities."""
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
    if table.caught and not (columns and all(column.volatile for column in columns)):
        lines += ["## How soon the score of another is reached", "", *catch_up(table), ""]
    return lines


def across_tasks(wanted: Across, standings: Sequence[across.Standing]) -> list[str]:
    """Write where every setting stands beside the baseline over all tasks."""
    return [*grid(across.header(), across.rows(wanted, standings)), "", across.note(wanted)]


def catch_up(table: Table) -> list[str]:
    """Write how soon the mean curves of some rows reach the last score of others."""
    rows = [
        [
            f"{one.pair.of} / {one.pair.reaches}",
            text.number(one.level, one.pair.digits),
            text.number(one.at, 0, one.limit),
            text.number(one.own, 0),
            text.number(one.share, 2),
            text.interval(one.share_interval, 2),
        ]
        for one in table.caught
    ]
    unit = table.caught[0].pair.x
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
    several = sorted({one.pair.last for one in table.caught} - {1})
    if several:
        note += f" Every point is the mean of the last {several[0]} evaluations."
    return [*grid(header, rows), "", note]


def sensitivity(table: Table) -> list[str]:
    """Write how far apart the curves of the named pairs lie."""
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


def _seeds(cells: Cells) -> list[str]:
    rows = [
        [
            cell.row.label,
            text.heading(cell.column),
            "  ".join(_one_seed(cell, value) for value in cell.values),
        ]
        for line in cells
        for cell in line
    ]
    return grid(["", "measure", "seeds in order"], rows)


def _one_seed(cell: Cell, value: float) -> str:
    return text.number(value, cell.column.digits, cell.limit)


def latex(table: Table, columns: tuple[Column, ...]) -> str:
    """Write the table as a paper prints it (needs the package booktabs)."""
    cells = select(table, columns)
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{tabular}{l" + "r" * (len(columns) + 1) + "}",
        "\\toprule",
        " & ".join(["", "n", *(_escape(text.heading(column)) for column in columns)]) + " \\\\",
        "\\midrule",
    ]
    for line in cells:
        label = _escape(line[0].row.label)
        lines.append(
            " & ".join([label, least_found(line), *(_escape(text.ours(cell)) for cell in line)]) + " \\\\"
        )
        if any(cell.paper for cell in line):
            paper = (_escape(text.published(cell)) for cell in line)
            lines.append(" & ".join(["\\quad paper", "", *paper]) + " \\\\")
    lines += ["\\bottomrule", "\\end{tabular}", ""]
    return "\n".join(lines)


def _escape(words: str) -> str:
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
        words = words.replace(plain, escaped)
    return words


def comma_separated(table: Table, columns: tuple[Column, ...]) -> str:
    """Write every cell as one line of CSV, in the column's unit."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_CSV_HEADER)
    for line in select(table, columns):
        for cell in line:
            paper = cell.paper or (None, None)
            numbers = [
                cell.mean,
                cell.std,
                cell.mean_interval.low,
                cell.mean_interval.high,
                cell.iqm,
                cell.iqm_interval.low,
                cell.iqm_interval.high,
                *paper,
            ]
            writer.writerow(
                [
                    cell.row.label,
                    cell.column.name,
                    cell.column.unit,
                    cell.n,
                    cell.expected,
                    *(_exact(value) for value in numbers),
                    cell.verdict,
                    " ".join(str(seed) for seed in cell.seeds),
                    " ".join(_exact(value) for value in cell.values),
                ]
            )
    return buffer.getvalue()


def _exact(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.10g}"
