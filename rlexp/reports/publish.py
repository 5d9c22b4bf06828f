"""From a sweep file and its run folders to the files of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlexp.errors import UsageError
from rlexp.reports import aggregate, figure, metrics, render, terminal_table, text
from rlexp.reports.definition import Expected, Sweep
from rlexp.reports.load import LoadedRuns, load_runs, reference_folder
from rlexp.runs.folder import CONFIG, EVALUATIONS, RECORD, write_atomically
from rlexp.system.files import open_file

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
    full: bool = False,
) -> Published:
    """Write and show a sweep's table and figure.

    :param sweep: the sweep file
    :param expected: the runs that must exist
    :param folder: where the files go
    :param console: where to print
    :param reference: folder of committed records to read instead of run folders
    :param full: print intervals and published numbers, too
    :raises UsageError: when there is nothing to show; nothing is written then
    """
    expected = list(expected)
    loaded = load_runs(expected, reference)
    if len(loaded.records) == 0:
        where = expected[0].folder.parents[4] if reference is None else reference
        first = loaded.missing[0]
        raise UsageError(
            f"report {sweep.name}: no finished run {_below(where)} ({first.label}, seed {first.seed}: {first.reason}); "
            f"train: rlexp sweep {sweep.runs_of}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    protocol = describe(sweep, expected, loaded)
    table = metrics.build(sweep, loaded)
    files: list[Path] = []
    if sweep.columns:
        scores = () if sweep.aggregate is None else aggregate.measure(sweep.aggregate, loaded)
        files += _tables(sweep, table, scores, loaded, protocol, folder)
        terminal_table.show(table, loaded.missing, console, full)
        if sweep.aggregate is not None:
            terminal_table.show_aggregate(sweep.aggregate, scores, console)
    if sweep.panels:
        files += _figure(sweep, table, loaded, protocol, folder)
        if not sweep.columns:
            terminal_table.show_contrasts(table, console)
            terminal_table.show_missing(loaded.missing, console)
    complete = not loaded.missing and table.complete
    return Published(tuple(files), complete)


def _below(folder: Path) -> str:
    here = Path.cwd()
    return f"below {folder.relative_to(here) if folder.is_relative_to(here) else folder}"


def _tables(
    sweep: Sweep,
    table: metrics.Table,
    scores: tuple[aggregate.AggregateScore, ...],
    loaded: LoadedRuns,
    protocol: tuple[str, ...],
    folder: Path,
) -> list[Path]:
    reproducible = tuple(column for column in sweep.columns if not column.volatile)
    volatile = tuple(column for column in sweep.columns if column.volatile)
    files = []
    for name, columns in ((sweep.name, reproducible), (f"{sweep.name}_times", volatile)):
        if not columns:
            continue
        # A figure of the same sweep has the plain name; the table's image then gets another one.
        stem = folder / (f"{name}_table" if sweep.panels and columns is reproducible else name)
        images = []
        if columns is reproducible:
            images = figure.draw_intervals(sweep.title, render.select(table, columns), stem)
        shown = scores if columns is reproducible else ()
        contents = {
            "md": render.markdown(
                table, columns, protocol, loaded.missing, images[0].name if images else None, shown
            ),
            "tex": render.latex(table, columns),
            "csv": text.csv(render.frame(table, columns)),
        }
        for ending, content in contents.items():
            path = stem.with_name(f"{stem.name}.{ending}")
            write_atomically(path, content)
            files.append(path)
        if shown:
            files.append(stem.with_name(f"{name}_across.csv"))
            write_atomically(files[-1], text.csv(aggregate.frame(shown)))
        files += images
    return files


def _figure(
    sweep: Sweep, table: metrics.Table, loaded: LoadedRuns, protocol: tuple[str, ...], folder: Path
) -> list[Path]:
    stem = folder / sweep.name
    images = figure.draw_curves(sweep, loaded, stem)
    lines = [
        f"# {sweep.title}",
        "",
        f"![{sweep.title}]({images[0].name})",
        "",
        figure.caption(sweep).capitalize() + ".",
        "",
    ]
    lines += render.contrasts(table, sweep.columns)
    if loaded.missing:
        lines += ["## Missing", "", *render.list_missing(loaded.missing), ""]
    notes = text.definitions(table, protocol, ())
    lines += ["## Definitions", "", *(f"- {line}" for line in notes), ""]
    contents = {"md": "\n".join(lines), "csv": text.csv(figure.frame(sweep, loaded))}
    for ending, content in contents.items():
        write_atomically(stem.with_name(f"{stem.name}.{ending}"), content)
    return [*(stem.with_name(f"{stem.name}.{ending}") for ending in contents), *images]


def describe(sweep: Sweep, expected: Iterable[Expected], loaded: LoadedRuns) -> tuple[str, ...]:
    """Say in sentences how the runs were trained and measured, from their configs.

    :param sweep: the sweep file
    :param expected: the runs that must exist
    :param loaded: runs of the sweep
    """
    lines = [f"Seeds {text.line_of_seeds(sweep.seeds)}: {len(sweep.seeds)} per row."]
    protocols = {_protocol(one.reported) for one in expected}
    lines += sorted(protocols)
    return (*lines, *loaded.notes)


def _protocol(config: Mapping[str, Any]) -> str:
    evaluation = config["evaluation"]
    budgets = [
        f"{config[key]:,} training {unit}"
        for key, unit in (("total_episodes", "episodes"), ("total_timesteps", "steps"))
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

    :param expected: the runs that must exist
    :param folder: ``outputs/reference/<name>``; records of runs that are there already are replaced
    :return: runs saved, runs missing
    """
    loaded = load_runs(list(expected))
    for label, seed, source in loaded.records.reindex(columns=["label", "seed", "folder"]).to_numpy():
        target = reference_folder(folder, label, seed)
        target.mkdir(parents=True, exist_ok=True)
        for name in (CONFIG, RECORD, EVALUATIONS):
            with open_file(source / name, "rb") as file:
                write_atomically(target / name, file.read().decode("utf-8"))
    return len(loaded.records), len(loaded.missing)
