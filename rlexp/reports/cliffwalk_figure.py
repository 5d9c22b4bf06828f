"""Blind Cliffwalk: updates until solved, by order of replay, as text, CSV and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlexp.reports import line_style, style
from rlexp.runs.folder import write_atomically

NAME = "cliffwalk"


def publish(measured: Mapping[str, Any], folder: Path) -> str:
    """Write ``max.csv``, ``max.svg``, ``max.png`` and the same for ``exact``, by starting priorities.

    :param measured: what ``rlexp.studies.cliffwalk.measure`` returns
    :param folder: where the files go
    :return: the tables, as text
    """
    folder.mkdir(parents=True, exist_ok=True)
    states, tables = measured["states"], []
    for initial, updates in measured["updates"].items():
        seeds = len(updates["uniform"][0])
        tables.append(f"initial priorities: {initial}; median updates until solved, {seeds} seeds")
        tables.append(_table(states, updates, measured["growth"][initial]))
        rows = [
            f"{order},{n},{seed},{found[row, seed]}"
            for order, found in updates.items()
            for row, n in enumerate(states)
            for seed in range(seeds)
        ]
        write_atomically(folder / f"{initial}.csv", "\n".join(["order,states,seed,updates", *rows]) + "\n")
        _draw(folder / initial, states, updates)
    return "\n\n".join(tables)


def _table(
    states: Sequence[int], updates: Mapping[str, Any], growth: Mapping[str, tuple[float, float, float]]
) -> str:
    """Write medians over seeds, and how the gain over uniform replay grows."""
    lines = ["states " + "".join(f"{order:>14}" for order in updates)]
    for row, n in enumerate(states):
        lines.append(f"{n:6d} " + "".join(f"{np.median(found[row]):14,.0f}" for found in updates.values()))
    lines += [
        "",
        "gain over uniform at the most states (median), and its growth per state [95 % interval over seeds]",
    ]
    for order, (slope, low, high) in growth.items():
        gain = np.median(updates["uniform"][-1] / updates[order][-1])
        lines.append(
            f"{order:13s} {gain:10,.1f} x   x {2**slope:.2f} per state [{2**low:.2f}, {2**high:.2f}]"
        )
    return "\n".join(lines)


def _draw(stem: Path, states: Sequence[int], updates: Mapping[str, Any]) -> None:
    """Draw medians and ranges over seeds against the number of transitions, both axes logarithmic."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    sizes = 2.0 ** (np.array(states) + 1) - 2
    with style.figure_style():
        figure, (axes,) = style.new_figure(5.5, 4.0)
        for place, (order, found) in enumerate(updates.items()):
            look = line_style.by_position(place)
            axes.plot(
                sizes,
                np.median(found, axis=1),
                color=look.colour,
                marker=look.marker,
                markersize=3,
                label=order,
            )
            axes.fill_between(
                sizes, found.min(axis=1), found.max(axis=1), color=look.colour, alpha=0.15, linewidth=0
            )
        axes.set(
            xscale="log", yscale="log", xlabel="transitions in the memory", ylabel="updates until solved"
        )
        for axis in (axes.xaxis, axes.yaxis):
            # matplotlib's own labels of powers are mathematics, which the style does not parse.
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            axis.set_minor_formatter(NullFormatter())
        axes.legend()
        seeds = len(next(iter(updates.values()))[0])
        style.frame(
            figure,
            f"Blind Cliffwalk, initial priorities: {stem.name}",
            f"line: median over {seeds} seeds; band: from the fewest to the most updates",
        )
        style.save(figure, stem)
