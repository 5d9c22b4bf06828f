"""Sweep files: which runs must exist, and which table or figure is drawn from them.

One YAML per published table or figure, with these keys (``sweeps/table1.yaml`` shows most of them)::

    title: one line
    seeds: 100-109              # or 0,1,5 or [0, 1, 5]; both ends belong to it
    common: [env=restaurant]    # overrides of every run
    seconds_per_run: 60         # for the estimated time, until a run of this sweep has finished
    runs:                       # one row each
      - {label: PPO, overrides: [algo=ppo], paper: {success_200: [37.8, 17.2]}}
    grid:                       # every combination, for every row of `runs` without its own grid
      algo.learning_rate: [1e-4, 3e-4]
    runs_of: table1             # instead of seeds, common, runs, grid: the runs of another sweep
    table: {columns: [...], contrasts: [...], aggregate: {...}}
    figure: {panels: [...]}     # both: sensitivity: [...], sample_efficiency: [...], notes: [...]

Paper values hang on the row, by column name, in its unit: a number or ``[mean, standard deviation]``.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from omegaconf import OmegaConf

from rlexp.config.shipped import sweeps_dir
from rlexp.errors import UsageError, did_you_mean
from rlexp.reports.definition import (
    UNITS,
    Aggregate,
    Column,
    Contrast,
    CurvePair,
    EfficiencyPair,
    Panel,
    Row,
    Sweep,
)

_KEYS = ("title", "seeds", "common", "seconds_per_run", "runs", "grid", "runs_of", "table", "figure")
_PARTS = {
    "table": ("columns", "contrasts", "sensitivity", "sample_efficiency", "aggregate", "notes"),
    "figure": ("panels", "sensitivity", "sample_efficiency", "notes"),
}
_RENAMED: dict[str, dict[str, str]] = {
    "table": {"catch_up": "sample_efficiency", "across": "aggregate"},
    "figure": {"catch_up": "sample_efficiency"},
    "column": {"of": "source", "until": "threshold", "judged": "comparable"},
}
_NAMES = {CurvePair: "sensitivity", EfficiencyPair: "sample_efficiency"}
_RESERVED = ("seed", "output_dir", "force")


def available(folder: Path | None = None) -> dict[str, str]:
    """Return the title of every sweep by name.

    :param folder: of sweep files; None: those that are shipped
    """
    found = {}
    for path in sorted((folder or sweeps_dir()).glob("*.yaml")):
        found[path.stem] = str(_content(path).get("title") or "")
    return found


def load(name: str, folder: Path | None = None) -> Sweep:
    """Read and check a sweep file.

    :param name: name of a shipped sweep, or the path of a YAML file
    :param folder: where to look for names
    :raises UsageError: when there is no such file or something in it is wrong
    """
    folder = folder or sweeps_dir()
    path = Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"
    if not path.is_file():
        names = sorted(p.stem for p in folder.glob("*.yaml"))
        raise UsageError(
            f"no sweep is called '{name}'; there are {', '.join(names) or 'none'}{did_you_mean(name, names)}"
        )
    content = _content(path)
    runs_of = path.stem
    if "runs_of" in content:
        runs_of = str(content["runs_of"])
        if runs_of == path.stem:
            raise UsageError(f"{path}: runs_of names the file itself")
        clash = sorted({"seeds", "common", "runs", "grid"} & set(content))
        if clash:
            raise UsageError(f"{path}: runs_of takes the runs of '{runs_of}'; remove {', '.join(clash)}")
        lender = _content(path.parent / f"{runs_of}.yaml")
        content = {
            key: lender[key]
            for key in ("seeds", "common", "runs", "grid", "seconds_per_run")
            if key in lender
        } | content
    sweep = _sweep(path, content, runs_of)
    _check_names(sweep)
    return sweep


def parse_seeds(text: Any) -> tuple[int, ...]:
    """Read ``100-109``, ``0,3,5``, ``0-4,10`` or a list of whole numbers.

    :param text: as written in a sweep file
    :raises UsageError: when it is none of these
    """
    parts = text if isinstance(text, list) else str(text).split(",")
    seeds: list[int] = []
    for part in parts:
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", str(part))
        if match is None:
            raise UsageError(f"seeds: '{text}' given, write 0-9 or 0,3,5")
        first, last = int(match[1]), int(match[2] or match[1])
        seeds.extend(range(first, last + 1))
    if not seeds or len(set(seeds)) != len(seeds):
        raise UsageError(f"seeds: '{text}' given, needs at least one seed and none twice")
    return tuple(seeds)


def _content(path: Path) -> dict[str, Any]:
    try:
        # OmegaConf and not PyYAML, which reads 1e-3 as a string.
        content = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    except Exception as error:  # whatever the YAML parser raises, its first line says what is wrong
        raise UsageError(f"{path}: cannot be read as YAML ({str(error).splitlines()[0]})") from error
    if not isinstance(content, dict):
        raise UsageError(f"{path}: a sweep file holds keys and values ({', '.join(_KEYS)})")
    keyed = {str(key): value for key, value in dict(content).items()}
    for key in keyed:
        if key not in _KEYS:
            raise UsageError(f"{path}: unknown key '{key}'{did_you_mean(key, _KEYS)}")
    for part, known in _PARTS.items():
        if not isinstance(keyed.get(part) or {}, dict):
            raise UsageError(f"{path}: {part} holds keys and values ({', '.join(known)})")
        _check_keys(path, part, keyed.get(part) or {}, known)
    return keyed


def _check_keys(path: Path, part: str, given: Iterable[Any], known: Sequence[str]) -> None:
    """:raises UsageError: when a key of a part is none of its own; a renamed one is answered with its new name"""
    for key in given:
        new = _RENAMED.get(part, {}).get(key)
        if key not in known and new is not None:
            raise UsageError(f"{path}: {part}: '{key}' is now called '{new}'")
        if key not in known:
            raise UsageError(f"{path}: {part}: unknown key '{key}'{did_you_mean(str(key), known)}")


def _sweep(path: Path, content: dict[str, Any], runs_of: str) -> Sweep:
    if "seeds" not in content or not ("runs" in content or "grid" in content):
        raise UsageError(f"{path}: a sweep needs seeds, and runs or grid")
    table, figure = content.get("table") or {}, content.get("figure") or {}
    rows = _rows(path, content)
    panels = [_build(Panel, path, panel) for panel in figure.get("panels", [])]
    return Sweep(
        name=path.stem,
        title=str(content.get("title") or path.stem),
        seeds=parse_seeds(content["seeds"]),
        rows=rows,
        seconds_per_run=float(content.get("seconds_per_run") or 60.0),
        runs_of=runs_of,
        columns=tuple(_build(Column, path, column) for column in table.get("columns", [])),
        contrasts=tuple(_build(Contrast, path, contrast) for contrast in table.get("contrasts", [])),
        sensitivity=tuple(
            _build(CurvePair, path, p)
            for p in [*table.get("sensitivity", []), *figure.get("sensitivity", [])]
        ),
        sample_efficiency=tuple(
            _build(EfficiencyPair, path, one)
            for one in [*table.get("sample_efficiency", []), *figure.get("sample_efficiency", [])]
        ),
        aggregate=_build(Aggregate, path, table["aggregate"]) if table.get("aggregate") else None,
        panels=tuple(panels),
        notes=tuple(str(note) for note in [*table.get("notes", []), *figure.get("notes", [])]),
    )


def _rows(path: Path, content: dict[str, Any]) -> tuple[Row, ...]:
    common = [str(override) for override in content.get("common") or []]
    rows = []
    for run in content.get("runs") or [{}]:
        unknown = sorted(set(run) - {"label", "overrides", "paper", "grid"})
        if unknown:
            raise UsageError(
                f"{path}: a run has label, overrides, paper and grid; unknown key '{unknown[0]}'"
            )
        overrides = [str(override) for override in run.get("overrides") or []]
        paper = {str(key): _published(path, value) for key, value in (run.get("paper") or {}).items()}
        for chosen in _combinations(run.get("grid", content.get("grid")) or {}):
            named = [str(run["label"])] if "label" in run else []
            label = ", ".join([*named, *(choice.removeprefix("env/benchmark=") for choice in chosen)])
            rows.append(Row(label, (*common, *overrides, *chosen), paper))
    _check_rows(path, rows)
    return tuple(rows)


def _combinations(grid: Mapping[Any, Iterable[Any]]) -> list[list[str]]:
    keys = [str(key) for key in grid]
    values = [[_word(value) for value in grid[key]] for key in grid]
    return [
        [f"{key}={value}" for key, value in zip(keys, chosen, strict=True)]
        for chosen in itertools.product(*values)
    ]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def _check_rows(path: Path, rows: list[Row]) -> None:
    labels = [row.label for row in rows]
    for row in rows:
        if not row.label or labels.count(row.label) > 1:
            raise UsageError(f"{path}: every row needs its own label, '{row.label}' is used twice")
        for override in row.overrides:
            key = override.lstrip("+~").partition("=")[0]
            if "=" not in override or key in _RESERVED:
                raise UsageError(f"{path}: '{override}' is not allowed among the overrides of a sweep")


def _published(path: Path, value: Any) -> tuple[float, float | None]:
    parts = value if isinstance(value, list) else [value]
    numbers = [part for part in parts if isinstance(part, (int, float)) and math.isfinite(part)]
    if len(numbers) != len(parts) or not 1 <= len(numbers) <= 2:
        raise UsageError(f"{path}: paper value '{value}'; write a number or [mean, standard deviation]")
    # Not made floats: 58 is printed as 58, 76.0 as 76.0, as in the paper.
    return numbers[0], numbers[1] if len(numbers) == 2 else None


_Part = TypeVar("_Part")


def _build(kind: type[_Part], path: Path, given: Mapping[str, Any]) -> _Part:
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    name = _NAMES.get(kind, kind.__name__.lower())
    _check_keys(path, name, given, known)
    values = {str(key): tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    try:
        part = kind(**values)
    except TypeError as error:
        raise UsageError(f"{path}: {name}: {error}") from error
    periods = getattr(part, "periods", "")
    if periods not in ("", "first_episode", "evaluation"):
        raise UsageError(f"{path}: periods: '{periods}' given, allowed are first_episode, evaluation")
    unit = getattr(part, "unit", "")
    if unit not in UNITS:
        raise UsageError(f"{path}: unit: '{unit}' given, allowed are {', '.join(filter(None, UNITS))}")
    return part


def _check_names(sweep: Sweep) -> None:
    columns = [column.name for column in sweep.columns]
    named = [contrast.of for contrast in sweep.contrasts] + [contrast.minus for contrast in sweep.contrasts]
    named += [label for pair in sweep.sensitivity for label in pair.rows]
    named += [label for one in sweep.sample_efficiency for label in (one.of, one.reaches)]
    if sweep.aggregate is not None:
        settings = (*sweep.aggregate.settings, sweep.aggregate.baseline)
        named += [f"{task} {setting}" for task in sweep.aggregate.tasks for setting in settings]
    named += [label for panel in sweep.panels for label in (*panel.rows, *panel.levels)]
    named += [str(point["row"]) for panel in sweep.panels for point in panel.references]
    named += [column.relative_to for column in sweep.columns if column.relative_to]
    for label in named:
        sweep.row(label)
    for name in [name for contrast in sweep.contrasts for name in contrast.columns]:
        if name not in columns:
            raise UsageError(
                f"sweeps/{sweep.name}.yaml: no column is called '{name}'{did_you_mean(name, columns)}"
            )
