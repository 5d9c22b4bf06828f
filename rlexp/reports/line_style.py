"""The colour, marker and dashes of a line: those of its algorithm, the same in every figure."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

# Okabe and Ito's palette for what is drawn most, told apart with every common colour blindness, then Tol's; two
# algorithms that meet in a figure differ in lightness or in their marker, so that a grey print can be read.
_ALGORITHMS = {
    "ppo": ("#0072B2", "s"),
    "lcpo": ("#D55E00", "o"),
    "tam": ("#009E73", "^"),
    "acer": ("#CC79A7", "D"),
    "dqn": ("#E69F00", "P"),
    "a2c": ("#56B4E9", "v"),
    "dqfd": ("#8C510A", "X"),
    "r2d2": ("#332288", "<"),
    "r2d3": ("#882255", ">"),
    "bc": ("#6E6E6E", "h"),
    "sac": ("#B2182B", "p"),
    "sac_lstm": ("#999933", "d"),
    "slac": ("#44AA99", "8"),
    "recurrent_ppo": ("#AA4499", "*"),
}
# Reference controllers do not learn: shades of grey, dotted and dashed, without markers.
_CONTROLLERS = {
    "schedule_aware": ("#111111", (0, (1, 1))),
    "handcrafted": ("#111111", (0, (1, 1))),
    "pi_fan": ("#444444", (0, (4, 2))),
    "builtin": ("#777777", (0, (6, 2, 1, 2))),
    "constant": ("#999999", (0, (1, 3))),
    "random": ("#AAAAAA", (0, (3, 4))),
}
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
_DASHES = ("-", "--", "-.", ":")
_SHADES = (0.0, 0.4, -0.4, 0.2)  # of an algorithm's settings

Dashes = str | tuple[int, tuple[int, ...]]


@dataclass(frozen=True)
class LineStyle:
    """How matplotlib draws a line.

    :param colour: ``#RRGGBB``
    :param marker: empty: none
    :param dashes: a named line style, or offset and lengths in points
    :param filled: whether the marker is
    """

    colour: str
    marker: str
    dashes: Dashes = "-"
    filled: bool = True

    @property
    def face(self) -> str:
        """Colour of the inside of a marker."""
        return self.colour if self.filled else "white"


def palette(index: int) -> str:
    """Return the colour of the n-th line where colours do not stand for algorithms.

    :param index: of the line, from 0 on
    """
    colours = [colour for colour, _ in _ALGORITHMS.values()]
    return colours[index % len(colours)]


def by_position(index: int) -> LineStyle:
    """Return the style of the n-th line where styles do not stand for algorithms.

    :param index: of the line, from 0 on
    """
    round_ = index // len(_ALGORITHMS)
    return LineStyle(
        palette(index), _MARKERS[index % len(_MARKERS)], _DASHES[round_ % len(_DASHES)], round_ == 0
    )


def assign(algorithms: Mapping[str, str | None]) -> dict[str, LineStyle]:
    """Return the style of every line of a figure.

    Where several algorithms are compared, each has its own colour and marker, and a further setting of the same one
    another shade, other dashes and an open marker. Where all lines are of one algorithm, colours stand for settings.

    :param algorithms: the algorithm behind each name, in the order of the lines; None: unknown
    """
    if None in algorithms.values() or len(set(algorithms.values())) < 2:
        return {name: by_position(place) for place, name in enumerate(algorithms)}
    seen: dict[str, int] = {}
    styles = {}
    for name, algorithm in algorithms.items():
        assert algorithm is not None
        styles[name] = _of(algorithm, seen.get(algorithm, 0))
        seen[algorithm] = seen.get(algorithm, 0) + 1
    return styles


def _of(algorithm: str, variant: int) -> LineStyle:
    if algorithm in _CONTROLLERS:
        colour, dashes = _CONTROLLERS[algorithm]
        return LineStyle(colour, "", dashes)
    # An algorithm of another package has the same style in every figure, too.
    place = zlib.crc32(algorithm.encode())
    colour, marker = _ALGORITHMS.get(algorithm) or (palette(place), _MARKERS[place % len(_MARKERS)])
    shade = _shade(colour, _SHADES[variant % len(_SHADES)])
    return LineStyle(shade, marker, _DASHES[variant % len(_DASHES)], variant == 0)


def _shade(colour: str, towards: float) -> str:
    """Mix a colour with white (up to 1) or black (down to -1)."""
    end = 255 if towards > 0 else 0
    parts = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(part + (end - part) * abs(towards)):02X}" for part in parts)
