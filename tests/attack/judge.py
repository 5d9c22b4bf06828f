"""The rules by which every case is judged, and the table of what broke them."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass, field

from tests.attack.sandbox import Result

RULES = (
    "traceback",
    "silent difference",
    "code executed",
    "connection",
    "process left",
    "file left",
    "wrong exit code",
    "not one line",
    "answered by the last resort",
    "hang",
)
_LAST_RESORT = "RLEXP_TRACEBACK=1 shows where"


@dataclass
class Verdict:
    """A case and the rules that it broke, each with what was seen."""

    kind: str
    name: str
    reproduction: str
    seconds: float
    broken: dict[str, str] = field(default_factory=dict)


def shell(argv: list[str]) -> str:
    """Return a command line as one would type it."""
    return " ".join(["rlexp", *(shlex.quote(argument) for argument in argv)])


def judge(result: Result, allowed: tuple[int, ...] = (0, 2), keeps_files: bool = False) -> dict[str, str]:
    """Return the rules that a command broke.

    :param allowed: exit codes that are right
    :param keeps_files: whether an answer with exit code 2 may leave files, e.g. those of a run that is resumed
    """
    broken = {}
    shown = result.out + result.err
    if "Traceback (most recent call last)" in shown:
        broken["traceback"] = _last(shown)
    if result.canary:
        broken["code executed"] = "the canary is there"
    if result.connections:
        broken["connection"] = result.connections[0]
    if result.alive:
        broken["process left"] = result.alive[0]
    if result.code is None:
        broken["hang"] = f"killed after {result.seconds:.0f} s; last line: {_last(shown)}"
    elif result.code not in allowed:
        broken["wrong exit code"] = f"{result.code}: {_last(result.err or result.out)}"
    if result.code == 2:
        if result.left and not keeps_files:
            broken["file left"] = result.left[0]
        if _LAST_RESORT in result.err:
            broken["answered by the last resort"] = _last(result.err)
        lines = [line for line in result.err.splitlines() if line.strip()]
        if "traceback" not in broken and (len(lines) != 1 or not lines[0].startswith("rlexp: ")):
            broken["not one line"] = f"{len(lines)} lines: {(lines or [''])[0][:150]}"
        elif lines and len(lines[0]) > 1000:
            broken["not one line"] = f"{len(lines[0])} characters"
    return broken


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "(nothing)"


def table(verdicts: list[Verdict]) -> str:
    """Return counts per kind and rule, and every offender with its reproduction."""
    kinds = sorted({verdict.kind for verdict in verdicts})
    counts = {kind: Counter(rule for v in verdicts if v.kind == kind for rule in v.broken) for kind in kinds}
    width = max(len(rule) for rule in RULES)
    lines = [f"{'':{width}}" + "".join(f"{kind:>14}" for kind in kinds)]
    totals = [sum(v.kind == kind for v in verdicts) for kind in kinds]
    lines.append(f"{'cases':{width}}" + "".join(f"{total:14}" for total in totals))
    seconds = [sum(v.seconds for v in verdicts if v.kind == kind) for kind in kinds]
    lines.append(f"{'seconds':{width}}" + "".join(f"{total:14.0f}" for total in seconds))
    lines += [f"{rule:{width}}" + "".join(f"{counts[kind][rule]:14}" for kind in kinds) for rule in RULES]
    for verdict in verdicts:
        for rule, seen in verdict.broken.items():
            lines.append(f"\n{verdict.kind}: {rule}: {verdict.name}\n  {verdict.reproduction}\n  {seen}")
    return "\n".join(lines)
