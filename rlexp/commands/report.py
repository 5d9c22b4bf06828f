"""``rlexp report NAME``: tables and figures from run folders."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rlexp import terminal
from rlexp.commands.arguments import Parser
from rlexp.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

    from rlexp.commands.sweep_plan import Compose

_OUTPUT_DIR = "outputs"


def names() -> list[str]:
    """Return what can be reported."""
    return [name.split()[0] for name in available()]


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "report",
        "Render a table or figure from run folders. "
        "NAME is a sweep (table1, figure4, ...), `run RUN`, `sweep DIR` or a measurement; none: list them.",
        "  rlexp report\n  rlexp report table1 --reference\n  rlexp report run RUN\n  rlexp report sweep DIR",
    )
    parsed.add_argument("words", nargs="*", metavar="NAME", help="what to render; output_dir=... of the runs")
    parsed.add_argument(
        "--strict", action="store_true", help="exit 1 when something is missing or out of tolerance"
    )
    parsed.add_argument("--output", type=Path, metavar="DIR", help="where the files go")
    parsed.add_argument(
        "--reference", action="store_true", help="read the committed records, not run folders"
    )
    parsed.add_argument("--save-reference", action="store_true", help="keep the records behind the numbers")
    return parsed


def main(argv: list[str], compose: Compose | None = None) -> int:
    """Run the verb.

    :param argv: words after ``rlexp report``
    :param compose: from words to a config; tests give quick ones
    :return: 0, or with ``--strict`` 1 when something is missing or out of tolerance
    :raises UsageError: when the words make no sense
    """
    console = terminal.console()
    args = parser().parse(argv)
    names, settings = _split(args.words)
    output_dir = settings.pop("output_dir", _OUTPUT_DIR)
    if args.output is not None:
        from rlexp.commands.preflight import check_writable

        check_writable(args.output, "--output")
    if args.reference and args.save_reference:
        raise UsageError("--reference reads the committed records, --save-reference writes them; choose one")
    if not names:
        for name, title in available().items():
            console.print(f"{name:<22} {title}", markup=False)
        return 0
    special = _SPECIAL.get(names[0])
    if special is not None:
        if args.reference or args.save_reference:
            raise UsageError(f"report {names[0]}: there are no committed records of it")
        if names[0] not in ("restaurant_fidelity", "datacenter_fidelity"):
            _refuse(settings)
        return special(names[1:], args, settings | {"output_dir": output_dir}, console)
    _refuse(settings)
    if len(names) > 1:
        raise UsageError(f"report {names[0]}: '{names[1]}' is one word too many")
    return _sweep_report(names[0], args, output_dir, console, compose)


def available() -> dict[str, str]:
    """Return what can be reported, one line each by name."""
    from rlexp.reports import sweep_file

    return {
        **sweep_file.available(),
        "restaurant_fidelity": "The restaurant task measured beside its reference figures",
        "datacenter_fidelity": "The data centre: a ladder of controllers on engine and surrogate",
        "cliffwalk": "Blind Cliffwalk: updates until solved, by order of replay (Schaul et al. 2016, Figure 1)",
        "run RUN": "Learning curve of one run",
        "sweep DIR": "Runs below a folder compared over whatever keys vary, best first",
    }


def _split(words: list[str]) -> tuple[list[str], dict[str, str]]:
    names, settings = [], {}
    for word in words:
        key, equals, value = word.partition("=")
        # The path of a run holds "seed=0"; only a bare key before the sign makes a setting.
        if not equals or "/" in key or Path(word).exists():
            names.append(word)
        else:
            settings[key] = value
    return names, settings


def _refuse(settings: dict[str, str]) -> None:
    for key, value in settings.items():
        raise UsageError(
            f"report: '{key}={value}' is no option; a report takes output_dir=... and nothing else of a run"
        )


def _sweep_report(
    name: str, args: argparse.Namespace, output_dir: str, console: Console, compose: Compose | None
) -> int:
    from rlexp.commands.sweep_plan import expected_runs
    from rlexp.reports import sweep_file

    try:
        sweep = sweep_file.load(name)
    except UsageError as error:
        names = [known.split()[0] for known in available()]
        if name.endswith((".yaml", ".yml")) or name in names:
            raise
        raise UsageError(
            f"no report is called '{name}'; there are {', '.join(names)}{did_you_mean(name, names)}"
        ) from error
    if not sweep.columns and not sweep.panels:
        raise UsageError(f"sweeps/{name}.yaml says neither which table nor which figure to render")
    from rlexp.reports import publish  # SciPy and NumPy, only now that there is something to compute

    expected = expected_runs(sweep, [f"output_dir={output_dir}"], compose)
    records = Path(output_dir) / "reference" / sweep.runs_of
    if args.save_reference:
        saved, missing = publish.save_reference(expected, records)
        console.print(
            f"{saved} records kept in {records}, {missing} runs missing", markup=False, soft_wrap=True
        )
    folder = args.output or Path(output_dir) / "reports" / sweep.name
    done = publish.publish(sweep, expected, folder, console, records if args.reference else None)
    console.print(
        f"written to {folder}: {', '.join(path.name for path in done.files)}", markup=False, soft_wrap=True
    )
    if args.strict and not done.complete:
        trained_by = name if sweep.runs_of == sweep.name else sweep.runs_of
        console.print(
            f"incomplete; train what is missing: rlexp sweep {trained_by}", markup=False, soft_wrap=True
        )
        return 1
    return 0


def _run_report(
    names: list[str], args: argparse.Namespace, settings: dict[str, str], console: Console
) -> int:
    from rlexp.reports import run

    if len(names) != 1:
        raise UsageError("report run: name one run folder")
    for path in run.show(Path(names[0]), console):
        console.print(f"written: {path}", markup=False, soft_wrap=True)
    return 0


def _comparison_report(
    names: list[str], args: argparse.Namespace, settings: dict[str, str], console: Console
) -> int:
    from rlexp.reports import comparison

    if len(names) != 1:
        raise UsageError("report sweep: name one folder, e.g. the one that a multirun printed")
    top = Path(names[0])
    found = comparison.compare(comparison.run_folders(top))
    folder = args.output or top / "report"
    for path in comparison.publish(found, folder, console):
        console.print(f"written: {path}", markup=False, soft_wrap=True)
    incomplete = bool(found.skipped) or any(setting.unfinished for setting in found.settings)
    return 1 if args.strict and incomplete else 0


def _fidelity_report(
    names: list[str], args: argparse.Namespace, settings: dict[str, str], console: Console
) -> int:
    from rlexp.commands.sweep_run import cores
    from rlexp.reports import fidelity

    if names:
        raise UsageError(f"report restaurant_fidelity: '{names[0]}' is one word too many")
    arguments: dict[str, str | int] = {}
    output_dir = Path(settings.pop("output_dir"))
    folder = args.output or output_dir / "reports" / fidelity.NAME
    for key, value in settings.items():
        if key not in _FIDELITY_KEYS:
            raise UsageError(
                f"report restaurant_fidelity: '{key}' is no setting of it; there are "
                f"{', '.join(_FIDELITY_KEYS)}{did_you_mean(key, _FIDELITY_KEYS)}"
            )
        if key in ("tables", "dialogues") and not value.isdecimal():
            raise UsageError(f"{key}: '{value}' given, a whole number is needed")
        arguments[key] = int(value) if key in ("tables", "dialogues") else value
    from rlexp.envs.restaurant.fidelity import measure

    console.print("measuring, about a minute ...")
    try:
        measured = measure(processes=cores(), **arguments)  # type: ignore[arg-type]
    except ValueError as error:
        raise UsageError(f"report restaurant_fidelity: {str(error).splitlines()[0]}") from error
    written, within = fidelity.publish(measured, folder, console)
    console.print(
        f"written to {folder}: {', '.join(path.name for path in written)}", markup=False, soft_wrap=True
    )
    return 1 if args.strict and not within else 0


def _cliffwalk_report(
    names: list[str], args: argparse.Namespace, settings: dict[str, str], console: Console
) -> int:
    from rlexp.reports import cliffwalk

    if names:
        raise UsageError(f"report cliffwalk: '{names[0]}' is one word too many")
    folder = args.output or Path(settings["output_dir"]) / "reports" / "cliffwalk"
    console.print("measuring, about a minute ...")
    console.print(cliffwalk.report(folder), markup=False)
    console.print(f"written to {folder}")
    return 0


def _datacenter_report(
    names: list[str], args: argparse.Namespace, settings: dict[str, str], console: Console
) -> int:
    from rlexp.commands.sweep_run import cores
    from rlexp.reports import energy_fidelity

    if names:
        raise UsageError(f"report datacenter_fidelity: '{names[0]}' is one word too many")
    folder = args.output or Path(settings.pop("output_dir")) / "reports" / energy_fidelity.NAME
    settings.pop("output_dir", None)
    for key in settings:
        if key not in ("city", "days"):
            raise UsageError(
                f"report datacenter_fidelity: '{key}' is no setting of it; there are city, days"
                f"{did_you_mean(key, ('city', 'days'))}"
            )
    days = settings.get("days", "365")
    if not days.isdecimal() or not 1 <= int(days) <= 365:
        raise UsageError(f"days: '{days}' given, must be a whole number from 1 to 365")
    from rlexp.envs.datacenter.fidelity import CITY, measure

    console.print("measuring, two minutes on two cores ...")
    try:
        measured = measure(settings.get("city", CITY), int(days), processes=cores())
    except UsageError as error:
        raise UsageError(f"report datacenter_fidelity: {error}") from error
    written, within = energy_fidelity.publish(measured, folder, console)
    console.print(
        f"written to {folder}: {', '.join(path.name for path in written)}", markup=False, soft_wrap=True
    )
    return 1 if args.strict and not within else 0


_FIDELITY_KEYS = ("tables", "dialogues", "database", "ontology")

_SPECIAL: dict[str, Callable[[list[str], argparse.Namespace, dict[str, str], Console], int]] = {
    "run": _run_report,
    "sweep": _comparison_report,
    "restaurant_fidelity": _fidelity_report,
    "datacenter_fidelity": _datacenter_report,
    "cliffwalk": _cliffwalk_report,
}
