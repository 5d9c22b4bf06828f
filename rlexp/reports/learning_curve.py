"""The learning curve of one run, on the terminal and as an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlexp import registry
from rlexp.config.intervals import PER_RUN
from rlexp.errors import UsageError
from rlexp.reports import line_style, style, terminal_plot
from rlexp.runs.folder import CONFIG, METRICS, TRACKED, read_evaluations, read_jsonl, read_record
from rlexp.runs.stored import read_config

if TYPE_CHECKING:
    from rich.console import Console

FILE_STEM = "learning_curve"


@dataclass(frozen=True)
class Curve:
    """What of a run is drawn: success over episodes where the environment has it, return over steps otherwise."""

    x: list[float]
    y: list[float]
    x_label: str
    y_label: str
    limits: tuple[float, float] | None


def curve(record: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Curve:
    """Choose what to draw of a run's evaluations.

    :param record: the run's record
    :param rows: its evaluations
    """
    if any(row.get("success_rate") is not None for row in rows):
        chosen = [row for row in rows if row.get("success_rate") is not None]
        unit = "dialogues" if str(record.get("env")) == "restaurant" else "episodes"
        return Curve(
            [float(row["episodes"]) for row in chosen],
            [100.0 * float(row["success_rate"]) for row in chosen],
            f"training {unit}",
            "success rate (%)",
            (0.0, 100.0),
        )
    chosen = [row for row in rows if row.get("return_mean") is not None]
    return Curve(
        [float(row["timesteps"]) for row in chosen],
        [float(row["return_mean"]) for row in chosen],
        "training steps",
        "return",
        None,
    )


def show(folder: Path, console: Console) -> list[Path]:
    """Print the learning curve of a run and draw it into its folder.

    :param folder: run folder
    :param console: where to print; without a terminal no colour codes are written, and plain ASCII where the
        stream cannot take more
    :return: the files written; none with fewer than two evaluations
    :raises UsageError: when the folder holds no run
    """
    record = read_record(folder)
    found = curve(record, read_evaluations(folder))
    if not found.x:
        console.print("no learning curve: nothing was evaluated", highlight=False)
        return []
    if len(found.x) < 2:
        # The end of training says the value itself.
        training = _training_curve(folder, record)
        if training is None:
            console.print(f"no learning curve: evaluated once{_hint(folder, record)}", highlight=False)
            return []
        hint = _hint(folder, record).replace("draws one", "draws evaluations")
        console.print(f"evaluated once; the curve is of training{hint}", highlight=False)
        found = training
    for line in _lines(found, console):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return draw(record, found, folder)


def _training_curve(folder: Path, record: Mapping[str, Any]) -> Curve | None:
    """Return what training itself came to: the environment's first figure where it is tracked, else the return."""
    spec = registry.envs().get(str(record.get("env")))
    figures = [key.removesuffix("_mean") for key, _ in spec.figures] if spec is not None else []
    for name, keys in ((TRACKED, figures), (METRICS, ["rollout/ep_rew_mean"])):
        rows = read_jsonl(folder / name)
        for key in keys:
            points = [(row.get("timesteps"), row.get(key)) for row in rows]
            drawn = [
                (float(x), float(y))
                for x, y in points
                if isinstance(x, (int, float)) and isinstance(y, (int, float))
            ]
            if len(drawn) > 1 and drawn[0][0] < drawn[-1][0]:
                label = "training return" if name == METRICS else f"{key} in training"
                return Curve([x for x, _ in drawn], [y for _, y in drawn], "training steps", label, None)
    return None


def _hint(folder: Path, record: Mapping[str, Any]) -> str:
    """Return which setting would have drawn one, in the unit of the run's budget; nothing where none would."""
    try:
        config = read_config(folder / CONFIG)
    except UsageError:
        return ""
    key, unit = (
        ("every_episodes", "episodes") if config.get("total_episodes") else ("every_timesteps", "timesteps")
    )
    trained = int(record.get(unit) or 0)
    return f"; evaluation.{key}={max(1, trained // PER_RUN)} draws one" if trained > 1 else ""


def _lines(found: Curve, console: Console) -> list[str]:
    return terminal_plot.plot(
        found.x,
        found.y,
        title=f"{found.y_label}, last {found.y[-1]:.1f}",
        x_label=found.x_label,
        width=min(60, console.width),
        limits=found.limits,
        unicode=(console.encoding or "").lower().startswith("utf"),
    )


def draw(record: Mapping[str, Any], found: Curve, folder: Path) -> list[Path]:
    """Write ``learning_curve.svg`` and ``learning_curve.png`` into the run folder.

    :param record: the run's record
    :param found: the curve to draw
    :param folder: run folder
    """
    with style.figure_style():
        figure, axes = style.new_figure(5.4, 3.4)
        one = axes[0]
        one.plot(
            found.x,
            found.y,
            color=line_style.palette(0),
            linewidth=1.6,
            marker="o",
            markersize=3,
            clip_on=False,
        )
        one.set_xlabel(found.x_label)
        one.set_ylabel(found.y_label)
        if found.limits is not None:
            one.set_ylim(*found.limits)
        one.set_xlim(left=0)
        names = [str(record.get(key)) for key in ("algo", "env") if record.get(key)]
        one.set_title(f"{' on '.join(names)}, seed {record.get('seed')}", fontsize=9, loc="left")
        return style.save(figure, folder / FILE_STEM)
