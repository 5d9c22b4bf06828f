"""``rlexp list [algos|envs|experiments|sweeps|reports|runs|demos]``: what there is, and what fits what."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from rlexp import record, registry, terminal
from rlexp.commands.arguments import Parser
from rlexp.config.paths import conf_dir, sweeps_dir
from rlexp.errors import UsageError, did_you_mean

_KINDS = ("algos", "envs", "experiments", "sweeps", "reports", "runs", "demos")


def names() -> list[str]:
    """Return what can be listed."""
    return list(_KINDS)


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "list",
        "Show what there is. Without a name: algos, envs, experiments, sweeps and reports.",
        "  rlexp list algos\n  rlexp list runs output_dir=outputs",
    )
    parsed.add_argument(
        "words", nargs="*", metavar="NAME", help=f"{', '.join(_KINDS)}; output_dir=... of runs, demos"
    )
    return parsed


def main(argv: list[str]) -> int:
    """Print one list, or the short ones all together."""
    words = parser().parse(argv).words
    options = [word for word in words if "=" in word]
    kinds = [word for word in words if "=" not in word] or [
        "algos",
        "envs",
        "experiments",
        "sweeps",
        "reports",
    ]
    output_dir = "outputs"
    for option in options:
        key, _, value = option.partition("=")
        if key != "output_dir":
            raise UsageError(f"{key}: not an option of list; output_dir=... is")
        output_dir = value
    for kind in kinds:
        if kind not in _KINDS:
            hint = f"; a folder is given as output_dir={kind}" if "/" in kind else did_you_mean(kind, _KINDS)
            raise UsageError(f"list: no list of '{kind}'; there are {', '.join(_KINDS)}{hint}")
    console = terminal.console()
    for kind in kinds:
        console.print(_table(kind, Path(output_dir)))
    return 0


def _table(kind: str, output_dir: Path) -> Table:
    if kind == "algos":
        return _algos()
    if kind == "envs":
        return _envs()
    if kind == "runs":
        return _runs(output_dir)
    if kind == "demos":
        return _demos(output_dir)
    table = Table("name", "what", title=kind, title_justify="left", box=None)
    for name, what in _described(kind):
        table.add_row(name, what)
    return table


def _algos() -> Table:
    table = Table(
        "algo=", "actions", "observations", "fits", "what", title="algos", title_justify="left", box=None
    )
    tasks = registry.envs().values()
    for spec in registry.algos().values():
        fits = [env.name for env in tasks if spec in registry.fitting(env.actions, env.observations, env)]
        table.add_row(
            spec.name, "/".join(spec.actions), "/".join(spec.observations), " ".join(fits), spec.summary
        )
    return table


def _envs() -> Table:
    table = Table(
        "env=", "actions", "observations", "fits", "what", title="envs", title_justify="left", box=None
    )
    for env in registry.envs().values():
        fits = [spec.name for spec in registry.fitting(env.actions, env.observations, env)]
        table.add_row(env.name, env.actions or "any", env.observations or "any", " ".join(fits), env.summary)
    return table


def _described(kind: str) -> list[tuple[str, str]]:
    if kind == "reports":
        from rlexp.commands.report import available

        return sorted(available().items())
    folder = conf_dir() / "experiment" if kind == "experiments" else sweeps_dir()
    return [(path.stem, _first_comment(path)) for path in sorted(folder.glob("*.yaml"))]


def _first_comment(path: Path) -> str:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") and not line.startswith("# @package"):
            return line.lstrip("# ").strip()
    return ""


def _runs(output_dir: Path) -> Table:
    table = Table(
        "run", "status", "episodes", "steps", "result", title="runs", title_justify="left", box=None
    )
    for path in sorted(output_dir.glob(f"runs/*/*/*/seed=*/{record.RECORD}")):
        if ".previous-" in path.parent.name:
            continue
        try:
            entry = record.read_record(path.parent)
        except UsageError:
            table.add_row(str(path.parent), "damaged", "", "", "")
            continue
        row = entry.get("evaluation") or {}
        rate = row.get("success_rate")
        result = f"{row.get('return_mean', '')}" if rate is None else f"{rate:.1%}"
        table.add_row(
            str(path.parent),
            record.status(path.parent, entry),
            str(entry.get("episodes", "")),
            str(entry.get("timesteps", "")),
            result,
        )
    return table


def _demos(output_dir: Path) -> Table:
    from rlexp.buffers.demonstrations import read_header
    from rlexp.commands.demos import FOLDER

    headings = ("file", "task", "expert", "episodes", "steps", "return", "success")
    table = Table(*headings, title="demos", title_justify="left", box=None)
    for path in sorted((output_dir / FOLDER).glob("*.npz")):
        row: tuple[str, ...]
        try:
            told = read_header(path)["provenance"]
            expert = told["expert"]
            success = f"{told['success_rate']:.1%}" if "success_rate" in told else ""
            row = (
                str(told["task"]),
                str(expert.get("run", expert["kind"])),
                str(told["episodes"]),
                str(told["steps"]),
                f"{told['return_mean']:.2f}",
                success,
            )
        except (ValueError, OverflowError, KeyError, TypeError, AttributeError):
            row = ("damaged", *[""] * 5)
        table.add_row(str(path), *row)
    return table
