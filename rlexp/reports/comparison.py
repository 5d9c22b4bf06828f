"""Run folders held against each other over whatever config keys vary among them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from omegaconf.errors import OmegaConfBaseException

from rlexp import stats
from rlexp.config.paths import reported
from rlexp.errors import UsageError
from rlexp.reports import line_style, style, text
from rlexp.reports.definition import UNITS, last_line
from rlexp.reports.load import flat
from rlexp.reports.render import grid
from rlexp.runs.folder import CONFIG, RECORD, read_evaluations, read_jsonl, read_record, write_atomically
from rlexp.runs.stored import read_config
from rlexp.system.terminal import inert

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console

RUNS = "runs.jsonl"
_SHOWN_LINES = 6


@dataclass(frozen=True)
class Setting:
    """Runs that differ in nothing but the seed.

    :param values: the varying keys and what they are here
    :param final: last evaluation of every finished run, by seed
    :param unfinished: how many runs are not finished
    """

    values: Mapping[str, Any]
    final: Mapping[int, Mapping[str, Any]]
    unfinished: int

    def sample(self, metric: str) -> list[float]:
        """Return one value per seed, in the order of the seeds.

        :param metric: key of an evaluation row
        """
        rows = [self.final[seed] for seed in sorted(self.final)]
        return [float(row[metric]) for row in rows if row.get(metric) is not None]

    @property
    def label(self) -> str:
        """Write the varying keys, shortened to their last part."""
        # "algo=ppo" and not "name=ppo": a choice is known by its group.
        parts = [
            inert(f"{key.removesuffix('.name').rsplit('.', 1)[-1]}={value}")
            for key, value in self.values.items()
            if value != ""
        ]
        return ", ".join(parts) or "all runs"


@dataclass(frozen=True)
class Comparison:
    """Settings, best first."""

    keys: tuple[str, ...]
    settings: tuple[Setting, ...]
    metric: str
    unit: str
    skipped: tuple[str, ...]

    @property
    def heading(self) -> str:
        """Return the measure with its unit."""
        name = "success rate" if self.metric == "success_rate" else self.metric.removesuffix("_mean")
        return f"final {name} (%)" if self.unit == "%" else f"final {name}"


def run_folders(top: Path) -> list[Path]:
    """Find run folders: those that a multirun wrote down, else every one below a folder.

    :param top: folder of a multirun, or any other
    :raises UsageError: when there are none
    """
    if not top.is_dir():
        raise UsageError(f"{top}: no such folder")
    noted = top / RUNS
    if noted.is_file():
        rows = read_jsonl(noted)
        if not all(isinstance(row.get("run"), str) for row in rows):
            raise UsageError(f"{noted}: damaged, a row names no run")
        folders = {Path(row["run"]) for row in rows}
        # A multirun that was moved together with its runs still finds them.
        return sorted(folder if folder.is_absolute() else top / folder for folder in folders)
    found = sorted(path.parent for path in top.rglob(RECORD))
    # Committed records are copies of runs that count already, and what force=true set aside is superseded.
    found = [path for path in found if "reference" not in path.relative_to(top).parts and _live(path)]
    if not found:
        raise UsageError(f"{top}: no run below this folder ({RECORD} is in none)")
    return found


def _live(folder: Path) -> bool:
    return re.fullmatch(r"seed=\d+", folder.name) is not None or not folder.name.startswith(("seed=", "."))


def compare(folders: Sequence[Path]) -> Comparison:
    """Group runs by config without the seed, and order the groups by their last evaluation.

    :param folders: run folders
    :raises UsageError: when none of the runs is finished
    """
    runs: list[tuple[str, int, Mapping[str, Any] | None]] = []
    configs: list[dict[str, Any]] = []
    skipped = []
    for folder in folders:
        try:
            record = read_record(folder)
            config = read_config(folder / CONFIG)
            learned, seed = flat(reported(config)), int(config.seed)
            rows = read_evaluations(folder)
        except UsageError as error:
            skipped.append(str(error))
            continue
        except (KeyError, TypeError, ValueError, OmegaConfBaseException) as error:
            skipped.append(f"{folder}: damaged run, {CONFIG} is not of a run ({last_line(error)})")
            continue
        final = rows[-1] if record["status"] == "finished" and rows else None
        runs.append((_variant(folder) or json.dumps(learned, sort_keys=True), seed, final))
        configs.append({key: json.dumps(value) for key, value in learned.items()})
    finished = [final for _, _, final in runs if final is not None]
    if not finished:
        raise UsageError("none of these runs is finished")
    success = all(row.get("success_rate") is not None for row in finished)
    metric = "success_rate" if success else "return_mean"
    settings = _settings(runs, pd.DataFrame(configs))

    def order(setting: Setting) -> tuple[float, str]:
        mean = stats.mean(setting.sample(metric))
        return (math.inf if math.isnan(mean) else -mean, setting.label)

    return Comparison(
        keys=tuple(settings[0].values),
        settings=tuple(sorted(settings, key=order)),
        metric=metric,
        unit="%" if success else "",
        skipped=tuple(skipped),
    )


def _settings(
    runs: Sequence[tuple[str, int, Mapping[str, Any] | None]], configs: pd.DataFrame
) -> list[Setting]:
    """Group runs by setting.

    :param runs: setting, seed and last evaluation of every run; None: not finished
    :param configs: their config, values as JSON, one column per key
    """
    groups = configs.groupby([setting for setting, _, _ in runs], sort=False)
    # Keys that follow the seed are no part of the setting.
    constant = groups.first().where(groups.nunique(dropna=False) == 1)
    keys = _varying(constant.fillna("null"))
    settings = []
    for name, values in constant.reindex(columns=keys).iterrows():
        members = [(seed, final) for setting, seed, final in runs if setting == name]
        final = {seed: last for seed, last in members if last is not None}
        chosen = {str(key): "" if pd.isna(value) else json.loads(value) for key, value in values.items()}
        settings.append(Setting(chosen, final, sum(last is None for _, last in members)))
    return settings


def _variant(folder: Path) -> str | None:
    """Return env, algo and variant of a run folder, None when it was renamed."""
    if re.fullmatch(r"seed=\d+", folder.name) is None:
        return None
    return "/".join(folder.absolute().parts[-4:-1])


def _varying(configs: pd.DataFrame) -> list[str]:
    """Return the keys that distinguish settings, environment and algorithm first; one row per setting."""
    counts = configs.nunique()
    keys = sorted(counts.index[counts > 1])
    names = [name for name in ("env.name", "algo.name") if name in keys]
    for name in names:
        # What every algorithm or environment has its own one value of is said by its name already.
        keys = [key for key in keys if configs.groupby(name)[[key]].nunique().max().item() > 1]
    return [*names, *keys]


def publish(found: Comparison, folder: Path, console: Console) -> list[Path]:
    """Print the comparison and write it as Markdown, CSV and images.

    :param found: settings, best first
    :param folder: where the files go
    :param console: where to print
    :return: what was written
    """
    folder.mkdir(parents=True, exist_ok=True)
    _show(found, console)
    images = draw(found, folder / "sweep")
    lines = [f"# {found.heading}, best first", "", f"![{found.heading}]({images[0].name})", ""]
    lines += [*grid(_header(found), _rows(found)), ""]
    lines += [f"- {line}" for line in (*_notes(), *found.skipped)]
    write_atomically(folder / "sweep.md", "\n".join([*lines, ""]))
    write_atomically(folder / "sweep.csv", text.csv(frame(found)))
    return [folder / "sweep.md", folder / "sweep.csv", *images]


def _notes() -> tuple[str, ...]:
    return (
        "Last evaluation of every finished run; settings that differ in the seed alone are one row.",
        "±: standard deviation over seeds, divided by n - 1. Interval: 95 % bootstrap of the mean.",
        "The best of many settings looks better on the seeds that chose it than it is; use fresh ones.",
    )


def _header(found: Comparison) -> list[str]:
    return [*found.keys, "seeds", found.heading, "95 % of the mean", "IQM", "every seed"]


def _rows(found: Comparison) -> list[list[str]]:
    digits, factor = (1, UNITS["%"]) if found.unit == "%" else (2, 1.0)
    rows = []
    for setting in found.settings:
        sample = [value * factor for value in setting.sample(found.metric)]
        total = len(sample) + setting.unfinished
        rows.append(
            [
                *(inert(value) for value in setting.values.values()),
                f"{len(sample)}/{total}",
                text.mean_and_std(stats.mean(sample), stats.std(sample), digits),
                text.interval(stats.mean_interval(sample), digits),
                text.number(stats.iqm(sample), digits),
                " ".join(text.number(value, digits) for value in sample),
            ]
        )
    return rows


def _show(found: Comparison, console: Console) -> None:
    from rich.table import Table

    table = Table(title=f"{found.heading}, best first", title_justify="left")
    for heading in _header(found)[:-1]:
        table.add_column(heading, justify="right")
    for row in _rows(found):
        table.add_row(*row[:-1])
    console.print(table)
    for line in found.skipped:
        console.print(f"left out: {line}", markup=False, highlight=False, soft_wrap=True)


def frame(found: Comparison) -> pd.DataFrame:
    """Return one row per setting, in the metric's own unit.

    :param found: settings, best first
    """
    rows = []
    for setting in found.settings:
        sample = setting.sample(found.metric)
        within = stats.mean_interval(sample)
        seeds = [seed for seed in sorted(setting.final) if setting.final[seed].get(found.metric) is not None]
        # As text, so that 1.0 does not become 1.
        values = ("" if value is None else str(value) for value in setting.values.values())
        head = (*values, found.metric, len(sample), setting.unfinished)
        numbers = (stats.mean(sample), stats.std(sample), within.low, within.high, stats.iqm(sample))
        lists = (" ".join(map(str, seeds)), " ".join(f"{value:.10g}" for value in sample))
        rows.append((*head, *numbers, *lists))
    numbers_of = ("metric", "n", "unfinished", "mean", "std", "low", "high", "iqm", "seeds", "values")
    return pd.DataFrame(rows, columns=[*found.keys, *numbers_of])


def draw(found: Comparison, stem: Path) -> list[Path]:
    """Draw the measure over the numeric key with the most values, one line per combination of the others.

    Where nothing numeric varies, or the lines would be too many, every setting becomes a separate line.

    :param found: settings, best first
    :param stem: path without ending
    :return: what was written
    """
    settings = [setting for setting in found.settings if setting.final]
    key = _numeric_key(found.keys, settings)
    lines: dict[str, list[Setting]] = {}
    if key is not None:
        for setting in settings:
            others = Setting({k: v for k, v in setting.values.items() if k != key}, {}, 0)
            lines.setdefault(others.label, []).append(setting)
    with style.figure_style():
        if key is not None and len(lines) <= _SHOWN_LINES:
            figure, axes = style.new_figure(5.4, 3.6)
            _draw_over(axes[0], found, key, lines)
        else:
            longest = max(len(setting.label) for setting in settings)
            figure, axes = style.new_figure(4.6 + 0.07 * longest, 1.0 + 0.3 * len(settings))
            _draw_ranking(axes[0], found, settings)
        figure.supxlabel(
            "bar: 95 % bootstrap interval of the mean; dots: every seed", fontsize=7, color="#555555"
        )
        return style.save(figure, stem)


def _numeric_key(keys: Sequence[str], settings: Sequence[Setting]) -> str | None:
    best, most = None, 2
    for key in keys:
        values = [setting.values[key] for setting in settings]
        numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        if numeric and len(set(values)) >= most:
            best, most = key, len(set(values)) + 1
    return best


def _draw_over(axes: Axes, found: Comparison, key: str, lines: Mapping[str, Sequence[Setting]]) -> None:
    factor = UNITS[found.unit]
    every = sorted({float(setting.values[key]) for chosen in lines.values() for setting in chosen})
    log = every[0] > 0 and every[-1] / every[0] >= 8
    for number, label in enumerate(sorted(lines)):
        chosen = sorted(lines[label], key=lambda setting: float(setting.values[key]))
        # A little beside one another, so that the bars of several lines do not hide each other.
        aside = 0.012 * (number - (len(lines) - 1) / 2)
        shift = (every[-1] / every[0]) ** aside if log else aside * (every[-1] - every[0])
        given = [float(setting.values[key]) for setting in chosen]
        x = [value * shift if log else value + shift for value in given]
        samples = [[value * factor for value in setting.sample(found.metric)] for setting in chosen]
        look = line_style.by_position(number)
        colour = look.colour
        for place, sample in zip(x, samples, strict=True):
            within = stats.mean_interval(sample)
            axes.plot([place] * len(sample), sample, ".", color=colour, alpha=0.35, markersize=5)
            if within.known:
                axes.plot([place, place], [within.low, within.high], color=colour, linewidth=2)
        means = [stats.mean(sample) for sample in samples]
        axes.plot(x, means, color=colour, marker=look.marker, linestyle=look.dashes, label=label)
    if log:
        axes.set_xscale("log")
    axes.set_xticks(every, [f"{place:g}" for place in every], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_xlabel(key)
    axes.set_ylabel(found.heading)
    if len(lines) > 1:
        axes.legend(fontsize=7.5)


def _draw_ranking(axes: Axes, found: Comparison, settings: Sequence[Setting]) -> None:
    factor, colour = UNITS[found.unit], line_style.palette(0)
    for place, setting in enumerate(settings):
        sample = [value * factor for value in setting.sample(found.metric)]
        within = stats.mean_interval(sample)
        axes.plot(sample, [place] * len(sample), ".", color=colour, alpha=0.4, markersize=5)
        if within.known:
            axes.plot([within.low, within.high], [place, place], color=colour, linewidth=3, alpha=0.8)
        axes.plot([stats.mean(sample)], [place], "|", color=colour, markersize=12, markeredgewidth=2)
    axes.set_ylim(len(settings) - 0.5, -0.5)
    axes.set_yticks(range(len(settings)), [setting.label for setting in settings], fontsize=8)
    axes.set_xlabel(found.heading)
    axes.grid(False, axis="y")
