"""Learning curves of a sweep, and a table drawn as intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rlexp import stats
from rlexp.reports import line_style, style, text
from rlexp.reports.definition import UNITS, Panel, Sweep
from rlexp.reports.line_style import LineStyle
from rlexp.reports.load import Array, LoadedRuns, curves, period_curves
from rlexp.reports.metrics import Metric

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BANDS = "line: mean over seeds; band: its 95 % bootstrap interval, from {least} seeds on; faint: every seed"
REFERENCES = "; ringed in black: the paper's value"
_COLUMNS = ["panel", "row", "metric", "unit", "x", "n", "expected", "mean", "std", "values"]
_LEAST_SEEDS = 5  # for an interval that means something
_MARKERS = 8  # on a line
_MOST_INSIDE = 5  # lines whose names fit into a panel beside them


def draw_curves(sweep: Sweep, loaded: LoadedRuns, stem: Path) -> list[Path]:
    """Draw every panel of a sweep's figure.

    :param sweep: the sweep file
    :param loaded: runs of the sweep
    :param stem: path without ending
    :return: what was written
    """
    names = _names(sweep)
    algorithms = {
        names[panel.title, label]: sweep.row(label).algorithm
        for panel in sweep.panels
        for label in _labels(sweep, panel)
    }
    styles = line_style.assign(algorithms)
    with style.figure_style():
        wide = min(len(sweep.panels), 3)
        rows = math.ceil(len(sweep.panels) / wide)
        figure, axes = style.new_figure(max(5.6, 4.7 * wide), 3.9 * rows, columns=wide, rows=rows)
        for one in axes[len(sweep.panels) :]:
            one.set_axis_off()
        for one, panel in zip(axes, sweep.panels, strict=False):
            drawn = {label: names[panel.title, label] for label in _labels(sweep, panel)}
            _Panel(one, sweep, panel, loaded, {label: styles[name] for label, name in drawn.items()}).draw()
        _legends(figure, axes[: len(sweep.panels)], sweep, loaded, names)
        style.frame(figure, sweep.title, caption(sweep))
        return style.save(figure, stem)


def caption(sweep: Sweep) -> str:
    """Say what the lines, bands and markers of a figure are.

    :param sweep: the sweep file
    """
    levels = "; across: the last value" if any(panel.levels for panel in sweep.panels) else ""
    references = REFERENCES if any(panel.references for panel in sweep.panels) else ""
    return BANDS.format(least=_LEAST_SEEDS) + levels + references


def _names(sweep: Sweep) -> dict[tuple[str, str], str]:
    """Return what a row is called in a panel: its label, without the first word where that tells panels apart."""
    labels = {panel.title: _labels(sweep, panel) for panel in sweep.panels}
    first = {title: {label.partition(" ")[0] for label in chosen} for title, chosen in labels.items()}
    one_each = all(len(words) == 1 for words in first.values())
    rest = all(label.partition(" ")[2] for chosen in labels.values() for label in chosen)
    shorten = one_each and rest and len(set().union(*first.values())) > 1
    return {
        (title, label): label.partition(" ")[2] if shorten else label
        for title, chosen in labels.items()
        for label in chosen
    }


def _legends(
    figure: Figure,
    axes: Sequence[Axes],
    sweep: Sweep,
    loaded: LoadedRuns,
    names: Mapping[tuple[str, str], str],
) -> None:
    """Name every line once: beside the panels when a name is in several or there are many, else inside each."""
    counts: dict[str, list[tuple[int, int]]] = {}
    for panel in sweep.panels:
        for label in _labels(sweep, panel):
            n = len(_curves(loaded, label, panel)[1])
            counts.setdefault(names[panel.title, label], []).append(
                (n, loaded.expected.get(label, len(sweep.seeds)))
            )

    def entries(shown: Sequence[tuple[Axes, Panel]]) -> tuple[list[Artist], list[str]]:
        found: dict[str, Artist] = {}
        for one, panel in shown:
            for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
                found.setdefault(names[panel.title, label], handle)
        return list(found.values()), [f"{name} (n={'/'.join(map(str, min(counts[name])))})" for name in found]

    shown = list(zip(axes, sweep.panels, strict=True))
    repeated = any(len(found) > 1 for found in counts.values())
    crowded = any(len(_labels(sweep, panel)) > _MOST_INSIDE for panel in sweep.panels)
    if len(axes) > 1 and (repeated or crowded):
        handles, labels = entries(shown)
        figure.set_figwidth(figure.get_figwidth() + 0.6 + 0.065 * max(map(len, labels)))
        figure.legend(handles, labels, fontsize=8, loc="outside right center")
    else:
        for one, panel in shown:
            one.legend(*entries([(one, panel)]), fontsize=7.5, loc="best")


class _Panel:
    """One pair of axes.

    :param styles: of every row, by label
    """

    def __init__(
        self, axes: Axes, sweep: Sweep, panel: Panel, loaded: LoadedRuns, styles: Mapping[str, LineStyle]
    ) -> None:
        self._axes, self._sweep, self._panel, self._loaded, self._styles = axes, sweep, panel, loaded, styles
        self._low, self._high, self._negative = math.inf, 0.0, False

    def draw(self) -> None:
        for label, look in self._styles.items():
            x, stacked = _curves(self._loaded, label, self._panel)
            if label in self._panel.levels:
                self._level(label, look, stacked)
            else:
                self._line(label, look, x, stacked)
        for point in self._panel.references:
            self._reference(point)
        self._finish()

    def _line(self, label: str, look: LineStyle, x: Array, stacked: Array) -> None:
        drawn = {"color": look.colour, "linestyle": look.dashes}
        marked = drawn | {"marker": look.marker, "markersize": 4, "markerfacecolor": look.face}
        if not len(stacked):
            self._axes.plot([], [], **marked, label=label)  # type: ignore[arg-type]
            return
        self._low, self._high = min(self._low, float(x[0])), max(self._high, float(x[-1]))
        y = stacked * UNITS[self._panel.unit]
        self._negative = self._negative or bool((y < 0).any())
        for seed in y:
            self._axes.plot(x, seed, **drawn, linewidth=0.5, alpha=0.25)  # type: ignore[arg-type]
        if len(y) >= _LEAST_SEEDS:
            self._axes.fill_between(x, *stats.mean_band(y), color=look.colour, alpha=0.15, linewidth=0)
        every = math.ceil(len(x) / _MARKERS)
        self._axes.plot(x, y.mean(axis=0), **marked, markevery=every, linewidth=1.8, label=label)  # type: ignore[arg-type]

    def _level(self, label: str, look: LineStyle, stacked: Array) -> None:
        last = stacked[:, -1] * UNITS[self._panel.unit] if len(stacked) else np.empty(0)
        if len(last):
            self._negative = self._negative or bool((last < 0).any())
        if len(last) >= _LEAST_SEEDS:
            (low,), (high,) = stats.mean_band(last[:, None])
            self._axes.axhspan(low, high, color=look.colour, alpha=0.1, linewidth=0)
        self._axes.axhline(
            last.mean() if len(last) else math.nan,
            color=look.colour,
            linestyle=(0, (8, 3)) if look.dashes == "-" else look.dashes,
            linewidth=1.4,
            label=label,
        )

    def _reference(self, point: Mapping[str, Any]) -> None:
        look, at = self._styles[str(point["row"])], float(point["at"])
        self._axes.errorbar(
            at,
            float(point["value"]),
            yerr=None if point.get("std") is None else float(point["std"]),
            fmt=look.marker or "o",
            color=look.colour,
            markeredgecolor="black",
            markeredgewidth=1.4,
            markersize=7,
            capsize=2.5,
            linewidth=1,
            zorder=5,
        )
        self._low, self._high = min(self._low, at), max(self._high, at)

    def _finish(self) -> None:
        axes, panel = self._axes, self._panel
        low, high = (self._low, self._high) if self._high else (100.0, 2000.0)
        if panel.periods:
            style.counted_axis(axes, low, high, panel.xlabel)
        elif panel.log:
            style.episodes_axis(axes, low / 1.08, high * 1.08, f"{panel.xlabel} (log scale)")
        else:
            style.plain_axis(axes, high, panel.xlabel)
        axes.set_ylabel(panel.ylabel or (f"{panel.title} ({panel.unit})" if panel.unit else panel.title))
        axes.set_title(panel.title, fontsize=9, loc="left")
        if panel.unit == "%":
            axes.set_ylim(0, 102)
        elif not self._negative:
            axes.set_ylim(bottom=0)


def _labels(sweep: Sweep, panel: Panel) -> tuple[str, ...]:
    return (
        tuple(dict.fromkeys((*panel.rows, *panel.levels)))
        if panel.rows
        else tuple(row.label for row in sweep.rows)
    )


def _curves(loaded: LoadedRuns, label: str, panel: Panel) -> tuple[Array, Array]:
    if panel.periods:
        return period_curves(loaded, label, panel.metric, panel.x, panel.periods)
    return curves(loaded, label, panel.metric, panel.x)


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
    groups = {metric.row.label.split(", ")[0]: metric.row.algorithm for metric in metrics}
    styles = line_style.assign(groups)
    for place, metric in enumerate(metrics):
        colour = styles[metric.row.label.split(", ")[0]].colour
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
