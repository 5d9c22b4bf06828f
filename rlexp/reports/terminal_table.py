"""A table on the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from rlexp.reports import aggregate, text
from rlexp.reports.definition import Aggregate
from rlexp.reports.load import MissingRun
from rlexp.reports.metrics import BETTER, INSIDE, WORSE, Metric, Table
from rlexp.reports.render import least_found

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_Heading = TypeVar("_Heading", "Text", str)
_COLOURS = {BETTER: "green", INSIDE: "cyan", WORSE: "yellow"}


_WIDTH = 80  # where there is no terminal, and of sentences
_LABEL = 24
_SIGNS = {BETTER: "+", INSIDE: "=", WORSE: "-"}


def show(table: Table, missing: Sequence[MissingRun], console: Console, full: bool = False) -> None:
    """Print the table: one line per metric or row, or with intervals, published numbers and verdicts below each value.

    :param table: numbers of a sweep
    :param full: whether everything is shown, which needs a wide terminal
    :param missing: runs that could not enter
    :param console: where to print
    """
    if full:
        _show_full(table, console)
    else:
        _show_compact(table, console)
    show_contrasts(table, console)
    show_missing(missing, console)


def _show_compact(table: Table, console: Console) -> None:
    """Print as many columns side by side as fit, and the others below them."""
    from rich.table import Table as Grid
    from rich.text import Text

    labels, headings, entries = _longer_side_down(
        [f"{line[0].row.label} ({least_found(line)})" for line in table.metrics],
        [text.heading(column) for column in table.sweep.columns],
        [[_short(metric) for metric in line] for line in table.metrics],
    )
    console.print(table.sweep.title, style="italic")
    cells = list(zip(*entries, strict=True))
    widths = [
        max(*(len(cell) for cell in column), *(len(word) for word in heading.split()))
        for heading, column in zip(headings, cells, strict=True)
    ]
    left = min(_LABEL, max(map(len, labels)))
    first = 0
    while first < len(headings):
        last, used = first, left
        while last < len(headings) and (last == first or used + 2 + widths[last] <= _columns(console)):
            used += 2 + widths[last]
            last += 1
        grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="bold")
        grid.add_column("", width=left, no_wrap=True, overflow="ellipsis")
        for place in range(first, last):
            grid.add_column(headings[place], justify="right", width=widths[place])
        for label, line in zip(labels, entries, strict=True):
            grid.add_row(Text(label), *line[first:last])
        console.print(grid, width=_columns(console))
        console.print()
        first = last
    console.print(
        "value ± s.d. over seeds (found/planned); + better, = inside, - worse than published\n"
        "--full shows intervals, IQM and the published numbers",
        style="dim",
    )


def _columns(console: Console) -> int:
    return console.width if console.is_terminal else _WIDTH


def _short(metric: Metric) -> Text:
    from rich.text import Text

    sign = _SIGNS.get(metric.verdict or "", "")
    return Text(f"{text.ours(metric)} {sign or ' '}", style=_COLOURS.get(metric.verdict or "", ""))


def _longer_side_down(
    labels: list[_Heading], headings: list[_Heading], entries: list[list[Text]]
) -> tuple[list[_Heading], list[_Heading], list[list[Text]]]:
    if len(headings) <= len(labels):
        return labels, headings, entries
    return headings, labels, [list(line) for line in zip(*entries, strict=True)]


def _show_full(table: Table, console: Console) -> None:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(title=table.sweep.title, title_justify="left", show_lines=True)
    grid.add_column("")
    labels = [Text(f"{line[0].row.label}\nn={least_found(line)}", style="bold") for line in table.metrics]
    headings = [Text(text.heading(column), style="bold") for column in table.sweep.columns]
    entries = [[_entry(metric) for metric in line] for line in table.metrics]
    labels, headings, entries = _longer_side_down(labels, headings, entries)
    for heading in headings:
        grid.add_column(heading, justify="right")
    for label, line in zip(labels, entries, strict=True):
        grid.add_row(label, *line)
    console.print(grid)
    console.print(
        "value ± s.d. [95 % of the mean] IQM [95 % of the IQM] paper: verdict", style="dim", markup=False
    )


def _entry(metric: Metric) -> Text:
    from rich.text import Text

    digits, limit = metric.column.digits, metric.limit
    entry = Text(text.ours(metric))
    if metric.mean_interval.known:
        entry.append(" " + text.interval(metric.mean_interval, digits, limit), style="dim")
    if metric.iqm_interval.known:
        within = text.interval(metric.iqm_interval, digits, limit)
        entry.append(f"\nIQM {text.number(metric.iqm, digits, limit)} {within}", style="dim")
    if metric.paper:
        entry.append(f"\npaper {text.published(metric)}", style="dim")
    if metric.verdict:
        entry.append(f": {metric.verdict}", style=_COLOURS.get(metric.verdict, ""))
    return entry


def show_contrasts(table: Table, console: Console) -> None:
    """Print differences between rows and sensitivities, if the sweep asks for any.

    :param table: numbers of a sweep
    :param console: where to print
    """
    for one in table.differences:
        digits = one.column.digits
        value = text.number(one.value, digits, sign=True)
        within = text.interval(one.interval, digits, sign=True)
        _show_line(
            f"{one.of} − {one.minus}, {text.heading(one.column)}: {value} {within}, "
            f"P(better) {text.number(one.improvement, 2)}",
            console,
        )
    for measured in table.sensitivity:
        line = f"{measured.pair.label}: curves of its two settings lie {text.number(measured.gap, 1)} apart"
        if measured is not table.sensitivity[0]:
            within = text.interval(measured.less_interval, 1)
            first = table.sensitivity[0].pair.label
            line += f", {text.number(measured.less, 1)} {within} less than those of {first}"
        _show_line(line, console)
    for reached in table.sample_efficiency:
        pair, share = reached.pair, text.number(reached.share, 2)
        _show_line(
            f"{pair.of} reaches the last score of {pair.reaches}, {text.number(reached.level, pair.digits)}, after "
            f"{text.number(reached.at, 0, reached.limit)} {pair.x}: {share} "
            f"{text.interval(reached.share_interval, 2)} of what that takes",
            console,
        )


def _show_line(line: str, console: Console) -> None:
    width = min(_WIDTH, console.width)
    for part in textwrap.wrap(line, width, subsequent_indent="  ", break_on_hyphens=False):
        console.print(part, markup=False, highlight=False)


def show_aggregate(wanted: Aggregate, scores: Sequence[aggregate.AggregateScore], console: Console) -> None:
    """Print how every setting compares with the baseline over all tasks.

    :param wanted: settings, baseline and environments to compare
    :param scores: of the settings
    :param console: where to print
    """
    from rich.table import Table as Grid

    grid = Grid(title=f"across {', '.join(wanted.tasks)}", title_justify="left")
    for place, heading in enumerate(aggregate.header()):
        grid.add_column(heading, justify="right" if place else "left")
    for row in aggregate.rows(wanted, scores):
        grid.add_row(*row)
    console.print(grid)


def show_missing(missing: Sequence[MissingRun], console: Console) -> None:
    """Print what could not enter: at most eight lines, the rest counted.

    :param missing: runs that could not enter
    :param console: where to print
    """
    for one in missing[:8]:
        console.print(f"missing: {one.label}, seed {one.seed}: {one.reason}", markup=False, highlight=False)
    if len(missing) > 8:
        console.print(f"missing: {len(missing) - 8} more; the report lists all of them", highlight=False)
