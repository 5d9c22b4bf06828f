"""``rlexp wandb show RUN``: what W&B's file of a run holds, without an account or a network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlexp.cli.arguments import Parser
from rlexp.errors import UsageError, did_you_mean
from rlexp.runs.messages import quoted
from rlexp.system import terminal

_CURVES = ("eval/success_rate", "eval/return_mean", "rollout/success_rate", "rollout/ep_rew_mean")
_INTERNAL = ("_wandb", "_step", "_runtime", "_timestamp")


def names() -> list[str]:
    """Return what can be done with a W&B run."""
    return ["show"]


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "wandb",
        "show RUN [curve=COLUMN]",
        "Show the W&B run that is stored in a run folder: config, summary, columns of the history and a curve.\n"
        "Nothing is sent; no account is needed. To send it: wandb sync RUN/wandb/offline-run-*",
        "  rlexp wandb show RUN\n  rlexp wandb show RUN curve=train/loss",
    )
    parsed.add_names("show RUN", "folder of a run, or W&B's offline-run-... folder in it", at_most=2)
    parsed.add_setting("curve", "column of the history to draw (default: success or return)", value="COLUMN")
    return parsed


def main(argv: list[str]) -> int:
    """Print the run."""
    args = parser().parse(argv)
    if args.names[:1] != ["show"]:
        given = f"'{args.names[0]}' given; " if args.names else ""
        raise UsageError(
            f"wandb: {given}write rlexp wandb show RUN{did_you_mean(' '.join(args.names[:1]), ['show'])}"
        )
    if len(args.names) < 2:
        raise UsageError("wandb show: needs a run folder, e.g. rlexp wandb show outputs/runs/...")
    from rlexp.runs.loggers import wandb_file

    folder = Path(args.names[1])
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder")
    path = wandb_file.find(folder)
    run = wandb_file.read(path, folder, (args.curve,) if args.curve else _CURVES)
    if args.curve and args.curve not in run.columns:
        raise UsageError(
            f"curve: the history has no column '{args.curve}'; there are {', '.join(_shown(run.columns))}"
            f"{did_you_mean(args.curve, run.columns)}"
        )
    console = terminal.console(width=None, soft_wrap=True)
    for line in _lines(run, path, console.width):
        console.print(line)
    for line in _curve(run, console):
        console.print(line)
    return 0


def _lines(run: Any, path: Path, width: int) -> Iterator[str]:
    yield from (f"{key:9} {value}" for key, value in run.info.items() if value)
    how = "not ended" if run.exit_code is None else f"ended with exit code {run.exit_code}"
    yield f"state     {how}, {run.rows:,} rows{'' if run.complete else '; the file ends within a message'}"
    yield f"file      {quoted(path)}"
    yield from _section("config", _flat(run.config), width)
    yield from _section("summary", dict(sorted(_flat(_shown(run.summary)).items())), width)
    columns = _shown(run.columns)
    if columns:
        wide = max(map(len, columns))
        yield f"\n{'history':{wide + 2}} {'rows':>7} {'lowest':>10} {'highest':>10} {'last':>10}"
        for name, one in sorted(columns.items()):
            numbers = " ".join(f"{_number(value):>10}" for value in (one.lowest, one.highest, one.last))
            yield f"  {name:{wide}} {one.count:>7,} {numbers}"


def _section(title: str, rows: Mapping[str, Any], width: int) -> Iterator[str]:
    if not rows:
        return
    yield f"\n{title}"
    wide = max(map(len, rows))
    for key, value in rows.items():
        text = _number(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
        left = max(20, width - wide - 4)
        yield f"  {key:{wide}}  {text if len(text) <= left else text[: left - 3] + '...'}"


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values by dotted keys."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and "_type" in value:  # a table or a video
            found[f"{prefix}{key}"] = value.get("path")
        elif isinstance(value, dict) and value:
            found |= _flat(value, f"{prefix}{key}.")
        elif key not in _INTERNAL:
            found[f"{prefix}{key}"] = value
    return found


def _shown(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in _INTERNAL}


def _number(value: float) -> str:
    return f"{value:.4g}" if not float(value).is_integer() or abs(value) >= 1e9 else f"{value:.0f}"


def _curve(run: Any, console: Any) -> Iterator[str]:
    from rlexp.reports import terminal_plot

    for name, points in run.points.items():
        ordered = sorted(points)
        if len(ordered) > 1 and ordered[0][0] < ordered[-1][0]:
            yield ""
            yield from terminal_plot.plot(
                [x for x, _ in ordered],
                [y for _, y in ordered],
                title=f"{name}, last {_number(points[-1][1])}",
                x_label=str(run.axis(name) or "_step"),
                width=min(60, console.width),
                unicode=(console.encoding or "").lower().startswith("utf"),
            )
            return
    yield "\nno curve: fewer than two points"
