"""A small line plot made of characters.

Written out here, since the plotting package for terminals (plotext) changed every name between its versions
5 and 6, and a learning curve needs no more than this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

_BRAILLE = 0x2800
# Bit of each of the eight dots of a braille character, by row and column.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def plot(
    x: Sequence[float],
    y: Sequence[float],
    title: str,
    x_label: str,
    width: int = 60,
    height: int = 12,
    limits: tuple[float, float] | None = None,
    unicode: bool = True,
) -> list[str]:
    """Draw a line.

    :param x: increasing
    :param y: as many values
    :param title: above the plot
    :param x_label: below the plot
    :param width: characters of the whole plot
    :param height: lines of the whole plot, title and axis included
    :param limits: of the y axis; None: as the values need
    :param unicode: draw with braille dots and box lines; else with plain ASCII
    :return: lines without colour codes
    """
    low, high = limits or _limits(y)
    rows = max(3, height - 3)
    marks = {
        0: _tick(high),
        rows // 2: _tick(high - (high - low) * (rows // 2) / (rows - 1)),
        rows - 1: _tick(low),
    }
    margin = max(len(mark) for mark in marks.values())
    columns = max(8, width - margin - 2)
    canvas = _braille(x, y, low, high, columns, rows) if unicode else _ascii(x, y, low, high, columns, rows)
    bar, corner, dash = ("┤", "└", "─") if unicode else ("|", "+", "-")
    lines = [title]
    for number, row in enumerate(canvas):
        lines.append(f"{marks.get(number, ''):>{margin}} {bar}{row}".rstrip())
    lines.append(" " * (margin + 1) + corner + dash * columns)
    first, last = _tick(x[0]), _tick(x[-1])
    middle = x_label.center(max(0, columns - len(first) - len(last)))
    lines.append(" " * (margin + 2) + f"{first}{middle}{last}")
    return lines


def _limits(y: Sequence[float]) -> tuple[float, float]:
    low, high = min(y), max(y)
    if low == high:
        return low - 1.0, high + 1.0
    return low, high


def _tick(value: float) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 10_000:
        return f"{value:,.0f}"
    return (
        f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}".rstrip("0").rstrip(".")
        if (abs(value) < 100)
        else f"{value:.0f}"
    )


def _path(
    x: Sequence[float], y: Sequence[float], low: float, high: float, columns: int, rows: int
) -> list[tuple[int, int]]:
    """Return the cells of a grid that the line passes, by column and row from the top."""
    span = (x[-1] - x[0]) or 1.0
    points = [
        (
            (place - x[0]) / span * (columns - 1),
            (1.0 - (min(max(value, low), high) - low) / (high - low)) * (rows - 1),
        )
        for place, value in zip(x, y, strict=True)
    ]
    passed = [(round(points[0][0]), round(points[0][1]))]
    for (x0, y0), (x1, y1) in pairwise(points):
        steps = max(1, math.ceil(max(abs(x1 - x0), abs(y1 - y0))))
        passed += [
            (round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps))
            for step in range(1, steps + 1)
        ]
    return passed


def _braille(
    x: Sequence[float], y: Sequence[float], low: float, high: float, columns: int, rows: int
) -> list[str]:
    cells = [[0] * columns for _ in range(rows)]
    for column, row in _path(x, y, low, high, 2 * columns, 4 * rows):
        cells[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
    return ["".join(chr(_BRAILLE + bits) if bits else " " for bits in line) for line in cells]


def _ascii(
    x: Sequence[float], y: Sequence[float], low: float, high: float, columns: int, rows: int
) -> list[str]:
    cells = [[" "] * columns for _ in range(rows)]
    for column, row in _path(x, y, low, high, columns, rows):
        cells[row][column] = "*"
    return ["".join(line) for line in cells]
