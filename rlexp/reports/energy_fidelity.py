"""The data centre's ladder of controllers on engine and surrogate, beside what it must meet."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlexp.record import write_atomically
from rlexp.reports.render import grid

if TYPE_CHECKING:
    from rich.console import Console

NAME = "datacenter_fidelity"
_YEARS = (
    "",
    "engine kW",
    "surrogate kW",
    "engine 22-25 °C W/E",
    "surrogate",
    "engine reward/step",
    "surrogate",
)
_CHECKS = ("", "", "measured", "reference", "allowed", "verdict")
_NOTES = (
    "kW: mean of servers, lights and cooling as the engine shows them at the end of every 15 minutes. 22-25 °C: "
    "share of these moments at which the west and the east zone lie inside. Reward: the paper's, mean per step.",
    "builtin: the building's own controllers. pi_fan: coldest supply air, PI control of the fans. schedule_aware: "
    "the same, the server load known. constant: 16 °C and 4.5 kg/s. random: uniform actions.",
    "The surrogate is held to the engine under the first three; under constant and random actions nothing brings a "
    "zone back, and what it misses adds up.",
)


def publish(measured: Mapping[str, Any], folder: Path, console: Console) -> tuple[list[Path], bool]:
    """Print and write a measurement.

    :param measured: what ``rlexp.envs.datacenter.fidelity.measure`` returns
    :param folder: where the files go
    :return: what was written, and whether everything lies inside
    """
    folder.mkdir(parents=True, exist_ok=True)
    years = [_year(name, measured["years"]) for name in measured["years"]["engine"]]
    checks = [_check(line) for line in measured["lines"]]
    parts = [
        f"# The data centre in {measured['city']}, {measured['days']} days",
        "",
        headline(measured) + ".",
        "",
    ]
    parts += [*grid(_YEARS, years), "", "## Beside what it must meet", "", *grid(_CHECKS, checks), ""]
    parts += ["## Definitions", "", *(f"- {note}" for note in _NOTES), ""]
    written = [folder / f"{NAME}.md", folder / f"{NAME}.csv"]
    write_atomically(written[0], "\n".join(parts))
    write_atomically(written[1], _csv(measured))
    _show(years, checks, measured, console)
    return written, all(line["inside"] for line in measured["lines"])


def headline(measured: Mapping[str, Any]) -> str:
    """Say in one line how many figures lie inside."""
    inside = sum(bool(line["inside"]) for line in measured["lines"])
    return f"{inside} of {len(measured['lines'])} figures as they must be; {measured['city']}, {measured['days']} days"


def _year(name: str, years: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    engine, surrogate = years["engine"][name], years["surrogate"][name]
    comfort = [f"{one['comfort_west']:.3f}/{one['comfort_east']:.3f}" for one in (engine, surrogate)]
    return [
        name,
        f"{engine['power_kw']:.2f}",
        f"{surrogate['power_kw']:.2f}",
        *comfort,
        f"{engine['step_reward']:.3f}",
        f"{surrogate['step_reward']:.3f}",
    ]


def _check(line: Mapping[str, Any]) -> list[str]:
    digits = 0 if line["quantity"].startswith("steps") else 3
    allowed = f"{line['lowest']:,.{digits}f}"
    allowed += " or more" if line["highest"] is None else f" to {line['highest']:,.{digits}f}"
    return [
        str(line["row"]),
        str(line["quantity"]),
        f"{line['measured']:,.{digits}f}",
        f"{line['reference']:,.{digits}f}",
        allowed,
        "inside" if line["inside"] else "OUTSIDE",
    ]


def _csv(measured: Mapping[str, Any]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("backend", "controller", "quantity", "value"))
    for backend, years in measured["years"].items():
        for controller, values in years.items():
            for quantity, value in values.items():
                writer.writerow((backend, controller, quantity, f"{value:.8g}"))
    return buffer.getvalue()


def _show(
    years: list[list[str]], checks: list[list[str]], measured: Mapping[str, Any], console: Console
) -> None:
    from rich.table import Table

    for title, headings, rows in (
        (f"the data centre in {measured['city']}, {measured['days']} days", _YEARS, years),
        ("beside what it must meet", _CHECKS, checks),
    ):
        table = Table(title=title, title_justify="left")
        for heading in headings:
            table.add_column(heading, justify="left" if heading in ("", "verdict") else "right")
        for row in rows:
            table.add_row(*row, style="bold red" if row[-1] == "OUTSIDE" else None)
        console.print(table)
    console.print(headline(measured), markup=False, highlight=False, soft_wrap=True)
