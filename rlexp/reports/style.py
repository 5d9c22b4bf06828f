"""How figures look, and how they come out byte for byte the same every time.

``rlexp.mplstyle`` holds whatever a style sheet can hold; here stand the axes and the files, in
``line_style.py`` the lines.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rlexp.system.files import open_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE_SHEET = Path(__file__).with_name("rlexp.mplstyle")


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw in rlexp's style without a display, whatever the user's matplotlibrc says."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(matplotlib.rc_params_from_file(_STYLE_SHEET, use_default_template=False))
        yield


def new_figure(width: float, height: float, columns: int = 1, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes, row by row, without touching pyplot's global state.

    :param width: inches
    :param height: inches
    :param columns: panels side by side
    :param rows: panels above one another
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    # A little more room than the default, since letters measure differently in SVG and PNG.
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.set(w_pad=0.09, h_pad=0.06)  # type: ignore[call-arg]
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.flat)


def episodes_axis(axes: Axes, low: float, high: float, label: str) -> None:
    """Make the x axis logarithmic, as the papers draw it, with plain numbers at round places.

    :param axes: whose x axis is set
    :param low: first number of episodes
    :param high: largest value
    :param label: of the axis
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    axes.set_xscale("log")
    axes.set_xlim(low, high)
    steps = [factor * 10**power for power in range(0, 9) for factor in (1, 2, 5)]
    axes.xaxis.set_major_locator(FixedLocator([step for step in steps if low <= step <= high] or [low, high]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(label)


def plain_axis(axes: Axes, high: float, label: str) -> None:
    """Make the x axis linear, from 0 on, with separators between thousands.

    :param axes: whose x axis is set
    :param high: largest value
    :param label: of the axis
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_xlim(0, high * 1.02)  # the last marker is whole
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel(label)


def counted_axis(axes: Axes, low: float, high: float, label: str) -> None:
    """Make the x axis one of numbered parts, e.g. the months of a year.

    :param axes: whose x axis is set
    :param low: number of the first part
    :param high: number of the last part
    :param label: of the axis
    """
    axes.set_xlim(low - 0.3, high + 0.3)
    axes.set_xticks(range(int(low), int(high) + 1))
    axes.set_xlabel(label)


def frame(figure: Figure, title: str, caption: str) -> None:
    """Write a title above and a caption below the axes, in as many lines as the figure's width needs.

    :param figure: with its axes in place
    :param title: above the axes
    :param caption: below the axes
    """
    width = float(figure.get_size_inches()[0])
    figure.suptitle(textwrap.fill(title, int(12.5 * width)), fontsize=10)
    figure.supxlabel(textwrap.fill(caption, int(18 * width)), fontsize=7, color="#555555")


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write ``<stem>.svg`` and ``<stem>.png`` without dates or program versions in them.

    :param figure: with its axes in place
    :param stem: path without ending
    :return: what was written
    """
    # The layout is found once; both files then share it.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    written = []
    for ending, metadata in (("svg", {"Date": None, "Creator": "rlexp"}), ("png", {"Software": None})):
        path = stem.with_name(f"{stem.name}.{ending}")
        temporary = stem.with_name(f".{stem.name}.{ending}")
        with open_file(temporary, "wb") as file:
            figure.savefig(file, format=ending, metadata=metadata)
        temporary.replace(path)
        written.append(path)
    return written
