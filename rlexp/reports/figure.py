"""Learning curves of a sweep, and a table drawn as intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rlexp import stats
from rlexp.reports import style, text
from rlexp.reports.definition import UNITS, Panel, Sweep
from rlexp.reports.load import Array, LoadedRuns, curves, period_curves
from rlexp.reports.metrics import Metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BANDS = "line: mean over seeds; band: ± 1 standard deviation; faint: every seed"
REFERENCES = "; open marker: the paper's value"
_COLUMNS = ["panel", "row", "metric", "unit", "x", "n", "expected", "mean", "std", "values"]
_MOST_INSIDE = 5  # rows whose names still fit into a panel beside its lines


def draw_curves(sweep: Sweep, loaded: LoadedRuns, stem: Path) -> list[Path]:
    """Draw every panel of a sweep's figure.

    :param sweep: the sweep file
    :param loaded: runs of the sweep
    :param stem: path without ending
    :return: what was written
    """
    with style.figure_style():
        wide = min(len(sweep.panels), 3)
        rows = math.ceil(len(sweep.panels) / wide)
        figure, axes = style.new_figure(max(5.6, 4.7 * wide), 3.9 * rows, columns=wide, rows=rows)
        for place, one in enumerate(axes):
            if place < len(sweep.panels):
                _panel(one, sweep, sweep.panels[place], loaded)
            else:
                one.set_axis_off()
        shown = {panel.rows for panel in sweep.panels}
        if len(sweep.panels) > 1 and len(shown) == 1 and len(_labels(sweep, sweep.panels[0])) > _MOST_INSIDE:
            figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside right upper")
        else:
            for one in axes[: len(sweep.panels)]:
                one.legend(fontsize=7.5, loc="best")
        style.frame(figure, sweep.title, caption(sweep))
        return style.save(figure, stem)


def caption(sweep: Sweep) -> str:
    """Say what the lines, bands and markers of a figure are.

    :param sweep: the sweep file
    """
    return BANDS + (REFERENCES if any(panel.references for panel in sweep.panels) else "")


def _panel(axes: Axes, sweep: Sweep, panel: Panel, loaded: LoadedRuns) -> None:
    labels = _labels(sweep, panel)
    order = _order(sweep)
    factor = UNITS[panel.unit]
    low, high, negative = math.inf, 0.0, False
    for label in labels:
        x, stacked = _curves(loaded, label, panel)
        n, colour, dash = len(stacked), style.colour(order[label]), style.dashes(order[label])
        name = f"{label} (n={n}/{loaded.expected.get(label, len(sweep.seeds))})"
        if not n:
            axes.plot([], [], color=colour, linestyle=dash, label=name)
            continue
        low, high = min(low, float(x[0])), max(high, float(x[-1]))
        y = stacked * factor
        for seed in y:
            axes.plot(x, seed, color=colour, linestyle=dash, linewidth=0.5, alpha=0.25)
        mean = y.mean(axis=0)
        negative = negative or bool((y < 0).any())
        if n > 1:
            std = y.std(axis=0, ddof=1)
            top = np.minimum(mean + std, 100.0) if panel.unit == "%" else mean + std
            bottom = mean - std if (y < 0).any() else np.maximum(mean - std, 0.0)
            axes.fill_between(x, bottom, top, color=colour, alpha=0.15, linewidth=0)
        axes.plot(x, mean, color=colour, linestyle=dash, linewidth=1.8, label=name)
    for point in panel.references:
        place = order[str(point["row"])]
        axes.errorbar(
            float(point["at"]),
            float(point["value"]),
            yerr=None if point.get("std") is None else float(point["std"]),
            fmt=style.marker(place),
            color=style.colour(place),
            markerfacecolor="white",
            markersize=6,
            capsize=2.5,
            linewidth=1,
            zorder=5,
        )
        low, high = min(low, float(point["at"])), max(high, float(point["at"]))
    if not high:
        low, high = 100.0, 2000.0
    if panel.log:
        style.episodes_axis(axes, low / 1.08, high * 1.08, f"{panel.xlabel} (log scale)")
    else:
        style.plain_axis(axes, high, panel.xlabel)
    axes.set_ylabel(panel.ylabel or (f"{panel.title} ({panel.unit})" if panel.unit else panel.title))
    axes.set_title(panel.title, fontsize=9, loc="left")
    if panel.unit == "%":
        axes.set_ylim(0, 100)
    elif not negative:
        axes.set_ylim(bottom=0)


def _labels(sweep: Sweep, panel: Panel) -> tuple[str, ...]:
    return tuple(panel.rows) or tuple(row.label for row in sweep.rows)


def _curves(loaded: LoadedRuns, label: str, panel: Panel) -> tuple[Array, Array]:
    if panel.periods:
        return period_curves(loaded, label, panel.metric, panel.x, panel.periods)
    return curves(loaded, label, panel.metric, panel.x)


def _order(sweep: Sweep) -> dict[str, int]:
    """Say which colour a row has in all panels and figures of a sweep: its own, or its setting's on every task."""
    if sweep.aggregate is not None:
        places = {name: place for place, name in enumerate(sweep.aggregate.settings)}
        named = {f"{task} {name}": place for name, place in places.items() for task in sweep.aggregate.tasks}
        if all(row.label in named for row in sweep.rows):
            return named
    return {row.label: place for place, row in enumerate(sweep.rows)}


def frame(sweep: Sweep, loaded: LoadedRuns) -> pd.DataFrame:
    """Return the mean curves: one row per panel, row and point, in the panel's unit.

    :param sweep: the sweep file
    :param loaded: runs of the sweep
    """
    rows = []
    for panel in sweep.panels:
        for label in _labels(sweep, panel):
            x, stacked = _curves(loaded, label, panel)
            for place, values in zip(x, stacked.T * UNITS[panel.unit], strict=True):
                expected = loaded.expected.get(label, len(sweep.seeds))
                every = " ".join(f"{value:.10g}" for value in values)
                mean_and_std = (values.mean(), stats.std(values))
                head = (panel.title, label, panel.metric, panel.unit, f"{place:.0f}")
                rows.append((*head, len(values), expected, *mean_and_std, every))
    return pd.DataFrame(rows, columns=_COLUMNS)


def draw_intervals(title: str, metrics: Sequence[Sequence[Metric]], stem: Path) -> list[Path]:
    """Draw a table: one small panel per column, one line per row, with the paper's value beside ours.

    :param title: of the figure
    :param metrics: one line per row of the table
    :param stem: path without ending
    :return: what was written
    """
    columns = len(metrics[0])
    wide = min(columns, 5)
    rows = math.ceil(columns / wide)
    with style.figure_style():
        height = (0.32 * len(metrics) + 1.0) * rows + 0.7
        figure, axes = style.new_figure(0.9 + 2.2 * wide, height, columns=wide, rows=rows)
        for place, one in enumerate(axes):
            if place >= columns:
                one.set_axis_off()
                continue
            _interval_panel(one, [line[place] for line in metrics], show_labels=place % wide == 0)
        paper = (
            "; open diamond: the paper (± s.d.)"
            if any(metric.paper for line in metrics for metric in line)
            else ""
        )
        style.frame(figure, title, f"bar: mean with its 95 % bootstrap interval; dots: every seed{paper}")
        return style.save(figure, stem)


def _interval_panel(axes: Axes, metrics: Sequence[Metric], show_labels: bool) -> None:
    # Rows of a grid share the colour of the setting that their label begins with.
    groups = list(dict.fromkeys(metric.row.label.split(", ")[0] for metric in metrics))
    for place, metric in enumerate(metrics):
        colour = style.colour(groups.index(metric.row.label.split(", ")[0]))
        finite = [value for value in metric.values if math.isfinite(value)]
        axes.plot(finite, [place] * len(finite), ".", color=colour, alpha=0.35, markersize=5)
        low, high = metric.mean_interval.low, metric.mean_interval.high
        right = metric.limit if math.isinf(high) else high
        if metric.mean_interval.known and math.isfinite(low):
            axes.plot(
                [low, right], [place, place], color=colour, linewidth=3, alpha=0.8, solid_capstyle="butt"
            )
        if math.isfinite(metric.mean):
            axes.plot([metric.mean], [place], "|", color=colour, markersize=13, markeredgewidth=2)
        elif math.isinf(metric.mean) and math.isfinite(metric.limit):
            axes.annotate(
                text.number(metric.mean, 0, metric.limit),
                (metric.limit, place),
                ha="right",
                va="bottom",
                fontsize=7,
            )
            axes.plot([metric.limit], [place], ">", color=colour, markersize=5)
        if metric.paper:
            axes.errorbar(
                metric.paper[0],
                place + 0.22,
                xerr=metric.paper[1],
                fmt="D",
                color="#333333",
                markerfacecolor="white",
                markersize=4,
                linewidth=0.8,
                capsize=2,
            )
    axes.set_ylim(len(metrics) - 0.5, -0.5)
    labels = [f"{metric.row.label} ({text.found(metric)})" for metric in metrics]
    axes.set_yticks(range(len(metrics)), labels if show_labels else [""] * len(metrics), fontsize=8)
    axes.set_title(text.heading(metrics[0].column), fontsize=8.5, loc="left")
    axes.margins(x=0.1)
    axes.grid(False, axis="y")
