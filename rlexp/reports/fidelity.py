"""An environment beside its reference: what lies within the tolerance and what does not.

:mod:`rlexp.studies` measures; every line of a measurement has ``row``, ``quantity``, ``measured``, ``reference``,
``lowest``, ``highest`` and ``inside``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from rlexp.reports import text
from rlexp.reports.render import grid
from rlexp.runs.folder import write_atomically

if TYPE_CHECKING:
    from rich.console import Console

RESTAURANT, DATACENTER = "restaurant_fidelity", "datacenter_fidelity"

_COMPARED = ("", "measured", "s.d. between tables", "reference", "allowed", "verdict")
_DIALOGUE_NOTES = (
    "Measured: mean over all dialogues of a row. s.d. between tables: how far the means of single confusion "
    "tables lie apart; which of equally near act types are confused is drawn once per table.",
    "Reference: measured with the published toolkit itself. Allowed: the reference and its tolerance.",
    "Turns: as PyDial counts them, the user's closing bye turn included; dialogues end as they do there.",
    "Error of the reference (goals): one standard error of a share of 2,000 goals.",
)
_YEARS = (
    *("", "engine kW", "surrogate kW", "engine 22-25 °C W/E", "surrogate", "engine reward/step"),
    "surrogate",
)
_CHECKS = ("", "", "measured", "reference", "allowed", "verdict")
_YEAR_NOTES = (
    "kW: mean of servers, lights and cooling as the engine shows them at the end of every 15 minutes. 22-25 °C: "
    "share of these moments at which the west and the east zone lie inside. Reward: the paper's, mean per step.",
    "builtin: the building's own controllers. pi_fan: coldest supply air, PI control of the fans. schedule_aware: "
    "the same, the server load known. constant: 16 °C and 4.5 kg/s. excitation: random setpoints and flows, held "
    "for up to five hours, half of the flows following a temperature. random: uniform actions.",
    "The surrogate is held to the engine under all but the last: under uniform actions zones are at 50 to 80 °C.",
)


def publish_restaurant(
    measured: Mapping[str, Any], folder: Path, console: Console
) -> tuple[list[Path], bool]:
    """Print and write a measurement of the restaurant environment.

    :param measured: what ``rlexp.studies.restaurant_fidelity.measure`` returns
    :param folder: where the files go
    :param console: where to print
    :return: what was written, and whether everything lies within its tolerance
    """
    lines: Sequence[Mapping[str, Any]] = measured["lines"]
    groups = {
        row: list(members) for row, members in itertools.groupby(lines, key=lambda line: str(line["row"]))
    }
    headline = (
        f"{_n_inside(lines)} of {len(lines)} figures within tolerance; {measured['tables']} confusion tables x "
        f"{measured['dialogues_per_table']:,} dialogues a row, {measured['database']} database"
    )
    parts = ["# The restaurant task beside its reference", "", f"{headline}.", ""]
    for row, members in groups.items():
        title = str(measured["titles"].get(row, row))
        parts += [f"## {title}", "", *grid(_COMPARED, [_dialogue_line(line) for line in members]), ""]
        # Shares of acts and goals are many; on the terminal they speak up only when they are off.
        shown = [line for line in members if not line["inside"] or ":" not in str(line["quantity"])]
        rows = [_dialogue_line(line) for line in shown]
        if len(members) > len(shown):
            rows.append([f"{len(members) - len(shown)} more", "", "", "", "", "inside"])
        _show(title, _COMPARED, rows, console)
    console.print(headline, markup=False, highlight=False, soft_wrap=True)
    columns = ["row", "quantity", "measured", "table_sd", "reference", "lowest", "highest", "inside"]
    stem = RESTAURANT
    if measured["database"] != "shipped":
        stem += f"_{Path(measured['database']).stem}"
    frame = pd.DataFrame(list(lines)).reindex(columns=columns)
    return _write(folder / stem, parts, _DIALOGUE_NOTES, text.csv(frame)), _all_inside(lines)


def publish_datacenter(
    measured: Mapping[str, Any], folder: Path, console: Console
) -> tuple[list[Path], bool]:
    """Print and write a measurement of the data centre.

    :param measured: what ``rlexp.studies.datacenter_fidelity.measure`` returns
    :param folder: where the files go
    :param console: where to print
    :return: what was written, and whether everything lies inside
    """
    lines: Sequence[Mapping[str, Any]] = measured["lines"]
    where = f"{measured['city']}, {measured['days']} days"
    years = [_year(name, measured["years"]) for name in measured["years"]["engine"]]
    checks = [_check(line) for line in lines]
    headline = f"{_n_inside(lines)} of {len(lines)} figures as they must be; {where}"
    parts = [f"# The data centre in {where}", "", f"{headline}.", "", *grid(_YEARS, years), ""]
    parts += ["## Beside what it must meet", "", *grid(_CHECKS, checks), ""]
    _show(f"the data centre in {where}", _YEARS, years, console)
    _show("beside what it must meet", _CHECKS, checks, console)
    console.print(headline, markup=False, highlight=False, soft_wrap=True)
    frame = pd.DataFrame(
        [
            (backend, controller, quantity, value)
            for backend, controllers in measured["years"].items()
            for controller, values in controllers.items()
            for quantity, value in values.items()
        ],
        columns=["backend", "controller", "quantity", "value"],
    )
    csv = text.csv(frame, digits=8)
    return _write(folder / DATACENTER, parts, _YEAR_NOTES, csv), _all_inside(lines)


def _dialogue_line(line: Mapping[str, Any]) -> list[str]:
    std, error = line.get("table_sd"), line.get("reference_error")
    reference = f"{line['reference']:g}" + (f" (s.e. {error:.1f})" if error is not None else "")
    return [
        str(line["quantity"]),
        text.number(float(line["measured"]), 2),
        "" if std is None else text.number(float(std), 2),
        reference,
        f"{line['lowest']:.2f} to {line['highest']:.2f}",
        _verdict(line),
    ]


def _year(name: str, years: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    both = [years[backend][name] for backend in ("engine", "surrogate")]
    return [
        name,
        *(f"{one['power_kw']:.2f}" for one in both),
        *(f"{one['comfort_west']:.3f}/{one['comfort_east']:.3f}" for one in both),
        *(f"{one['step_reward']:.3f}" for one in both),
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
        _verdict(line),
    ]


def _verdict(line: Mapping[str, Any]) -> str:
    return "inside" if line["inside"] else "OUTSIDE"


def _n_inside(lines: Sequence[Mapping[str, Any]]) -> int:
    return sum(bool(line["inside"]) for line in lines)


def _all_inside(lines: Sequence[Mapping[str, Any]]) -> bool:
    return _n_inside(lines) == len(lines)


def _write(stem: Path, parts: Sequence[str], notes: Sequence[str], csv: str) -> list[Path]:
    stem.parent.mkdir(parents=True, exist_ok=True)
    markdown = "\n".join([*parts, "## Definitions", "", *(f"- {note}" for note in notes), ""])
    written = []
    for ending, content in (("md", markdown), ("csv", csv)):
        written.append(stem.with_name(f"{stem.name}.{ending}"))
        write_atomically(written[-1], content)
    return written


def _show(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    styles = {"inside": "green", "OUTSIDE": "bold red"}
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("", "verdict") else "right")
    for row in rows:
        table.add_row(*row[:-1], Text(row[-1], style=styles.get(row[-1], "")))
    console.print(table)
