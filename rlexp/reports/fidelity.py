"""A task measured beside its reference figures: what lies within the tolerance and what does not."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlexp.record import write_atomically
from rlexp.reports import text
from rlexp.reports.render import grid

if TYPE_CHECKING:
    from rich.console import Console

NAME = "restaurant_fidelity"
_HEADER = ("", "measured", "s.d. between tables", "reference", "allowed", "verdict")
_NOTES = (
    "Measured: mean over all dialogues of a row. s.d. between tables: how far the means of single confusion "
    "tables lie apart; which of equally near act types are confused is drawn once per table.",
    "Reference: measured with the published toolkit itself. Allowed: the reference and its tolerance.",
    "Turns: as PyDial counts them, the user's closing bye turn included; dialogues end as they do there.",
    "Error of the reference (goals): one standard error of a share of 2,000 goals.",
)


def publish(measured: Mapping[str, Any], folder: Path, console: Console) -> tuple[list[Path], bool]:
    """Print and write a fidelity measurement.

    :param measured: what ``rlexp.envs.restaurant.fidelity.measure`` returns
    :param folder: where the files go
    :return: what was written, and whether everything lies within its tolerance
    """
    lines: Sequence[Mapping[str, Any]] = measured["lines"]
    folder.mkdir(parents=True, exist_ok=True)
    stem = NAME if measured["database"] == "shipped" else f"{NAME}_{Path(measured['database']).stem}"
    written = []
    for ending, content in (("md", _markdown(measured, lines)), ("csv", _csv(lines))):
        path = folder / f"{stem}.{ending}"
        write_atomically(path, content)
        written.append(path)
    _show(measured, lines, console)
    return written, all(line["inside"] for line in lines)


def headline(measured: Mapping[str, Any]) -> str:
    """Say in one line how many figures lie inside."""
    count = len(measured["lines"])
    inside = sum(bool(line["inside"]) for line in measured["lines"])
    return (
        f"{inside} of {count} figures within tolerance; {measured['tables']} confusion tables x "
        f"{measured['dialogues_per_table']:,} dialogues a row, {measured['database']} database"
    )


def _groups(lines: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines:
        groups.setdefault(str(line["row"]), []).append(line)
    return groups


def _cells(line: Mapping[str, Any]) -> list[str]:
    spread = line.get("table_sd")
    error = line.get("reference_error")
    reference = f"{line['reference']:g}" + (f" (s.e. {error:.1f})" if error is not None else "")
    return [
        str(line["quantity"]),
        text.number(float(line["measured"]), 2),
        "" if spread is None else text.number(float(spread), 2),
        reference,
        f"{line['lowest']:.2f} to {line['highest']:.2f}",
        "inside" if line["inside"] else "OUTSIDE",
    ]


def _markdown(measured: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> str:
    parts = ["# The restaurant task beside its reference", "", headline(measured) + ".", ""]
    for row, members in _groups(lines).items():
        parts += [f"## {measured['titles'].get(row, row)}", ""]
        parts += [*grid(_HEADER, [_cells(line) for line in members]), ""]
    parts += ["## Definitions", "", *(f"- {note}" for note in _NOTES), ""]
    return "\n".join(parts)


def _csv(lines: Sequence[Mapping[str, Any]]) -> str:
    keys = ("row", "quantity", "measured", "table_sd", "reference", "lowest", "highest", "inside")
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(keys)
    for line in lines:
        values = [line.get(key) for key in keys]
        writer.writerow(f"{value:.10g}" if isinstance(value, float) else value for value in values)
    return buffer.getvalue()


def _show(measured: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    for row, members in _groups(lines).items():
        # Shares of acts and goals are many; on the terminal they speak up only when they are off.
        shown = [line for line in members if not line["inside"] or ":" not in str(line["quantity"])]
        table = Table(title=str(measured["titles"].get(row, row)), title_justify="left")
        for heading in _HEADER:
            table.add_column(heading, justify="left" if heading in ("", "verdict") else "right")
        for line in shown:
            *cells, verdict = _cells(line)
            table.add_row(*cells, Text(verdict, style="green" if line["inside"] else "bold red"))
        rest = len(members) - len(shown)
        if rest:
            table.add_row(f"{rest} more", "", "", "", "", Text("inside", style="green"))
        console.print(table)
    console.print(headline(measured), markup=False, highlight=False, soft_wrap=True)
