"""``rlexp report NAME``: tables and figures from run folders."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlexp.cli import catalogue
from rlexp.cli.arguments import Parser, whole
from rlexp.errors import UsageError, did_you_mean, first_line
from rlexp.system import terminal

if TYPE_CHECKING:
    from rich.console import Console

    from rlexp.sweep.plan import Compose


def names() -> list[str]:
    """Return what can be reported."""
    return [name.split()[0] for name in catalogue.reports()]


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "report",
        "[NAME] [RUN|DIR] [key=value ...]",
        "Render tables and figures from run folders.",
        "  rlexp report\n  rlexp report table1 --reference\n  rlexp report run RUN\n  rlexp report sweep DIR\n"
        "  rlexp report restaurant_fidelity tables=10",
    )
    parsed.add_names(
        "NAME",
        "a sweep (table1, figure4, ...), `run RUN`, `sweep DIR` or a measurement; without it, list them",
        at_most=2,
    )
    parsed.add_setting("output_dir", "of the runs (default: outputs)")
    parsed.add_setting("tables", "restaurant_fidelity: number of confusion tables", type=whole(1))
    parsed.add_setting("dialogues", "restaurant_fidelity: dialogues per table", type=whole(1))
    parsed.add_setting("database", "restaurant_fidelity: a venue database in PyDial's format", value="FILE")
    parsed.add_setting("ontology", "restaurant_fidelity: the ontology beside it", value="FILE")
    parsed.add_setting("city", "datacenter_fidelity: whose weather")
    parsed.add_setting(
        "days", "datacenter_fidelity: how many, from January 1 (default: 365)", type=whole(1, 365)
    )
    parsed.add_argument(
        "--strict",
        action="store_true",
        help="exit with code 1 when a run is missing or a value out of tolerance",
    )
    parsed.add_argument("--full", action="store_true", help="print intervals and published numbers, too")
    parsed.add_argument("--output", type=Path, metavar="DIR", help="folder for the files")
    parsed.add_argument(
        "--reference", action="store_true", help="read the committed records, not run folders"
    )
    parsed.add_argument("--save-reference", action="store_true", help="keep the records behind the numbers")
    return parsed


def main(argv: list[str], compose: Compose | None = None) -> int:
    """Render one report, or list them.

    :param argv: arguments after ``rlexp report``
    :param compose: from overrides to a config; tests substitute quick ones
    :return: 0, or with ``--strict`` 1 when something is missing or out of tolerance
    :raises UsageError: when the arguments are invalid
    """
    console = terminal.console()
    args = parser().parse(argv)
    if args.output is not None:
        from rlexp.runs.preflight import check_writable

        check_writable(args.output, "--output")
    if args.reference and args.save_reference:
        raise UsageError("--reference reads the committed records, --save-reference writes them; choose one")
    if not args.names:
        for name, title in catalogue.reports().items():
            console.print(f"{name:<22} {title}", markup=False)
        return 0
    of_a_sweep = _Kind(lambda args, console: _sweep_report(args, console, compose))
    kind = _KINDS.get(args.names[0], of_a_sweep)
    _check(args, kind)
    args.output_dir = args.output_dir or "outputs"
    return kind.render(args, console)


@dataclass(frozen=True)
class _Kind:
    """One kind of report.

    :param render: prints and writes it; returns the exit code
    :param folder: what its second name stands for; empty: it takes none
    :param settings: the settings it takes
    """

    render: Callable[[argparse.Namespace, Console], int]
    folder: str = ""
    settings: tuple[str, ...] = ("output_dir",)


def _check(args: argparse.Namespace, kind: _Kind) -> None:
    name, *rest = args.names
    if name in _KINDS and (args.reference or args.save_reference):
        raise UsageError(f"report {name}: there are no committed records of it")
    if kind.folder and not rest:
        raise UsageError(f"report {name}: needs {kind.folder}")
    if rest and not kind.folder:
        raise UsageError(f"report {name}: '{rest[0]}' is one argument too many")
    for key in ("output_dir", "tables", "dialogues", "database", "ontology", "city", "days"):
        if getattr(args, key) is not None and key not in kind.settings:
            allowed = ", ".join(kind.settings) or "no settings"
            raise UsageError(f"{key}: not a setting of rlexp report {name}, which takes {allowed}")


def _print_written(folder: Path, paths: Sequence[Path], console: Console) -> None:
    line = f"written to {folder}: {', '.join(path.name for path in paths)}"
    parts = textwrap.wrap(line, 80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    console.print("\n".join(parts), markup=False, soft_wrap=True)


def _sweep_report(args: argparse.Namespace, console: Console, compose: Compose | None) -> int:
    from rlexp.reports import sweep_file
    from rlexp.sweep.plan import expected_runs

    name = args.names[0]
    try:
        sweep = sweep_file.load(name)
    except UsageError as error:
        known = names()
        if name.endswith((".yaml", ".yml")) or name in known:
            raise
        raise UsageError(
            f"no report is called '{name}'; there are {', '.join(known)}{did_you_mean(name, known)}"
        ) from error
    if not sweep.columns and not sweep.panels:
        raise UsageError(f"sweeps/{name}.yaml says neither which table nor which figure to render")
    from rlexp.reports import publish  # SciPy and NumPy, only now that there is something to compute

    expected = expected_runs(sweep, [f"output_dir={args.output_dir}"], compose)
    records = Path(args.output_dir) / "reference" / sweep.runs_of
    if args.reference and not records.is_dir():
        raise UsageError(
            f"report {name}: no committed records in {records}; they come with a checkout of rlexp, not with the "
            f"package: run it there, say where they are with output_dir=..., or train: rlexp sweep {sweep.runs_of}"
        )
    if args.save_reference:
        saved, missing = publish.save_reference(expected, records)
        console.print(
            f"{saved} records kept in {records}, {missing} runs missing", markup=False, soft_wrap=True
        )
    folder = args.output or Path(args.output_dir) / "reports" / sweep.name
    done = publish.publish(sweep, expected, folder, console, records if args.reference else None, args.full)
    _print_written(folder, done.files, console)
    if args.strict and not done.complete:
        trained_by = name if sweep.runs_of == sweep.name else sweep.runs_of
        console.print(
            f"incomplete; train what is missing: rlexp sweep {trained_by}", markup=False, soft_wrap=True
        )
        return 1
    return 0


def _run_report(args: argparse.Namespace, console: Console) -> int:
    from rlexp.reports import learning_curve

    for path in learning_curve.show(Path(args.names[1]), console):
        console.print(f"written: {path}", markup=False, soft_wrap=True)
    return 0


def _comparison_report(args: argparse.Namespace, console: Console) -> int:
    from rlexp.reports import comparison

    top = Path(args.names[1])
    found = comparison.compare(comparison.run_folders(top))
    folder = args.output or top / "report"
    for path in comparison.publish(found, folder, console):
        console.print(f"written: {path}", markup=False, soft_wrap=True)
    incomplete = bool(found.skipped) or any(setting.unfinished for setting in found.settings)
    return 1 if args.strict and incomplete else 0


def _fidelity_report(args: argparse.Namespace, console: Console) -> int:
    from rlexp.reports import fidelity
    from rlexp.sweep.execute import cores

    settings = {key: getattr(args, key) for key in _FIDELITY_SETTINGS if getattr(args, key) is not None}
    folder = args.output or Path(args.output_dir) / "reports" / fidelity.RESTAURANT
    from rlexp.studies.restaurant_fidelity import measure

    console.print("measuring, about a minute ...")
    try:
        measured = measure(processes=cores(), **settings)
    except ValueError as error:
        raise UsageError(f"report restaurant_fidelity: {first_line(error)}") from error
    written, within = fidelity.publish_restaurant(measured, folder, console)
    _print_written(folder, written, console)
    return 1 if args.strict and not within else 0


def _cliffwalk_report(args: argparse.Namespace, console: Console) -> int:
    from rlexp.reports import cliffwalk_figure
    from rlexp.studies import cliffwalk

    folder = args.output or Path(args.output_dir) / "reports" / cliffwalk_figure.NAME
    console.print("measuring, about a minute ...")
    console.print(cliffwalk_figure.publish(cliffwalk.measure(), folder), markup=False)
    console.print(f"written to {folder}")
    return 0


def _datacenter_report(args: argparse.Namespace, console: Console) -> int:
    from rlexp.reports import fidelity
    from rlexp.sweep.execute import cores

    folder = args.output or Path(args.output_dir) / "reports" / fidelity.DATACENTER
    from rlexp.studies.datacenter_fidelity import CITY, measure

    console.print("measuring, two minutes on two cores ...")
    try:
        measured = measure(args.city or CITY, args.days or 365, processes=cores())
    except UsageError as error:
        raise UsageError(f"report datacenter_fidelity: {error}") from error
    written, within = fidelity.publish_datacenter(measured, folder, console)
    _print_written(folder, written, console)
    return 1 if args.strict and not within else 0


_FIDELITY_SETTINGS = ("tables", "dialogues", "database", "ontology")

_KINDS = {
    "run": _Kind(_run_report, "the folder of a run", ()),
    "sweep": _Kind(_comparison_report, "a folder of runs, e.g. the one that a multirun printed", ()),
    "restaurant_fidelity": _Kind(_fidelity_report, "", ("output_dir", *_FIDELITY_SETTINGS)),
    "datacenter_fidelity": _Kind(_datacenter_report, "", ("output_dir", "city", "days")),
    "cliffwalk": _Kind(_cliffwalk_report),
}
