"""From a sweep file and its run folders to the files of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlexp.folder import open_file
from rlexp.record import CONFIG, EVALUATIONS, RECORD, write_atomically
from rlexp.reports import across, cells, figure, render, terminal, text
from rlexp.reports.records import Collection, Expected, collect, reference_folder
from rlexp.reports.sweep_file import Sweep

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Published:
    """What a report wrote, and whether nothing was missing."""

    files: tuple[Path, ...]
    complete: bool


def publish(
    sweep: Sweep,
    expected: Iterable[Expected],
    folder: Path,
    console: Console,
    reference: Path | None = None,
) -> Published:
    """Write and show a sweep's table and figure.

    :param expected: the runs that must exist
    :param folder: where the files go
    :param reference: folder of committed records to read instead of run folders
    """
    expected = list(expected)
    found = collect(expected, reference)
    folder.mkdir(parents=True, exist_ok=True)
    protocol = describe(sweep, expected, found)
    table = cells.build(sweep, found)
    files: list[Path] = []
    if sweep.columns:
        standings = () if sweep.across is None else across.measure(sweep.across, found)
        files += _tables(sweep, table, standings, found, protocol, folder)
        terminal.show(table, found.absent, console)
        if sweep.across is not None:
            terminal.show_across(sweep.across, standings, console)
    if sweep.panels:
        files += _figure(sweep, table, found, protocol, folder)
        if not sweep.columns:
            terminal.show_contrasts(table, console)
            terminal.show_absent(found.absent, console)
    complete = not found.absent and table.complete
    return Published(tuple(files), complete)


def _tables(
    sweep: Sweep,
    table: cells.Table,
    standings: tuple[across.Standing, ...],
    found: Collection,
    protocol: tuple[str, ...],
    folder: Path,
) -> list[Path]:
    steady = tuple(column for column in sweep.columns if not column.volatile)
    volatile = tuple(column for column in sweep.columns if column.volatile)
    files = []
    for name, columns in ((sweep.name, steady), (f"{sweep.name}_times", volatile)):
        if not columns:
            continue
        # A figure of the same sweep has the plain name; the table's picture then steps aside.
        stem = folder / (f"{name}_table" if sweep.panels and columns is steady else name)
        pictures = []
        if columns is steady:
            pictures = figure.draw_intervals(sweep.title, render.select(table, columns), stem)
        shown = standings if columns is steady else ()
        contents = {
            "md": render.markdown(
                table, columns, protocol, found.absent, pictures[0].name if pictures else None, shown
            ),
            "tex": render.latex(table, columns),
            "csv": render.comma_separated(table, columns),
        }
        for ending, content in contents.items():
            path = stem.with_name(f"{stem.name}.{ending}")
            write_atomically(path, content)
            files.append(path)
        if shown:
            files.append(stem.with_name(f"{name}_across.csv"))
            write_atomically(files[-1], across.comma_separated(shown))
        files += pictures
    return files


def _figure(
    sweep: Sweep, table: cells.Table, found: Collection, protocol: tuple[str, ...], folder: Path
) -> list[Path]:
    stem = folder / sweep.name
    pictures = figure.draw_curves(sweep, found, stem)
    lines = [
        f"# {sweep.title}",
        "",
        f"![{sweep.title}]({pictures[0].name})",
        "",
        figure.caption(sweep).capitalize() + ".",
        "",
    ]
    lines += render.contrasts(table, sweep.columns)
    if found.absent:
        lines += ["## Missing", "", *render.missing(found.absent), ""]
    notes = text.definitions(table, protocol, ())
    lines += ["## Definitions", "", *(f"- {line}" for line in notes), ""]
    contents = {"md": "\n".join(lines), "csv": figure.curves_as_csv(sweep, found)}
    for ending, content in contents.items():
        write_atomically(stem.with_name(f"{stem.name}.{ending}"), content)
    return [*(stem.with_name(f"{stem.name}.{ending}") for ending in contents), *pictures]


def describe(sweep: Sweep, expected: Iterable[Expected], found: Collection) -> tuple[str, ...]:
    """Say in sentences how the runs were trained and measured, from their configs."""
    lines = [f"Seeds {text.line_of_seeds(sweep.seeds)}: {len(sweep.seeds)} per row."]
    protocols = {_protocol(one.learning) for one in expected}
    lines += sorted(protocols)
    return (*lines, *found.notes)


def _protocol(config: Mapping[str, Any]) -> str:
    evaluation = config["evaluation"]
    budgets = [
        f"{config[key]:,} training {word}"
        for key, word in (("total_episodes", "episodes"), ("total_timesteps", "steps"))
        if config.get(key) is not None
    ]
    every = evaluation.get("every_episodes") or evaluation.get("every_timesteps")
    unit = "episodes" if evaluation.get("every_episodes") else "steps"
    when = f"after every {every:,} training {unit}" if every else "at the end"
    actions = "the most probable action taken" if evaluation["deterministic"] else "actions sampled"
    return (
        f"Protocol: {' or '.join(budgets)}; {evaluation['episodes']} evaluation episodes {when}, {actions}, "
        "on a task of their own with fixed seeds. An episode of the restaurant task is a dialogue."
    )


def save_reference(expected: Iterable[Expected], folder: Path) -> tuple[int, int]:
    """Keep the small records behind a report: config, record and evaluations of every run, no weights.

    :param folder: ``outputs/reference/<name>``; records of runs that are there already are replaced
    :return: runs saved, runs missing
    """
    found = collect(list(expected))
    saved = 0
    for runs in found.runs.values():
        for run in runs:
            target = reference_folder(folder, run.label, run.seed)
            target.mkdir(parents=True, exist_ok=True)
            for name in (CONFIG, RECORD, EVALUATIONS):
                with open_file(run.folder / name, "rb") as file:
                    write_atomically(target / name, file.read().decode("utf-8"))
            saved += 1
    return saved, len(found.absent)
