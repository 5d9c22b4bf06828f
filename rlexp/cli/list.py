"""``rlexp list [algos|envs|experiments|sweeps|reports|runs|demos]``: what there is, and what is compatible."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from rlexp import registry
from rlexp.cli import catalogue
from rlexp.cli.arguments import Parser
from rlexp.config.shipped import conf_dir, sweeps_dir
from rlexp.errors import UsageError, did_you_mean
from rlexp.runs import folder as run_folder
from rlexp.system import terminal

_SHORT = ("algos", "envs", "experiments", "sweeps", "reports")
_KINDS = (*_SHORT, "runs", "demos")


def names() -> list[str]:
    """Return what can be listed."""
    return list(_KINDS)


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "list",
        "[NAME ...] [output_dir=...]",
        f"Show what there is: {', '.join(_KINDS)}.",
        "  rlexp list\n  rlexp list algos\n  rlexp list runs output_dir=outputs",
    )
    parsed.add_names("NAME", f"what to list (default: {', '.join(_SHORT)})", at_most=len(_KINDS))
    parsed.add_setting("output_dir", "of the runs or demos", default="outputs")
    return parsed


def main(argv: list[str]) -> int:
    """Print one list, or the short ones all together."""
    args = parser().parse(argv)
    for kind in args.names:
        if kind not in _KINDS:
            hint = f"; a folder is set as output_dir={kind}" if "/" in kind else did_you_mean(kind, _KINDS)
            raise UsageError(f"list: no list of '{kind}'; there are {', '.join(_KINDS)}{hint}")
    console = terminal.console()
    for kind in args.names or _SHORT:
        console.print(_table(kind, Path(args.output_dir)))
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
        "algo=", "actions", "observations", "envs", "what", title="algos", title_justify="left", box=None
    )
    envs = registry.envs().values()
    for spec in registry.algos().values():
        compatible = [
            env.name for env in envs if spec in registry.compatible_algos(env.actions, env.observations, env)
        ]
        table.add_row(
            spec.name, "/".join(spec.actions), "/".join(spec.observations), " ".join(compatible), spec.summary
        )
    return table


def _envs() -> Table:
    table = Table(
        "env=", "actions", "observations", "algos", "what", title="envs", title_justify="left", box=None
    )
    for env in registry.envs().values():
        compatible = [spec.name for spec in registry.compatible_algos(env.actions, env.observations, env)]
        table.add_row(
            env.name, env.actions or "any", env.observations or "any", " ".join(compatible), env.summary
        )
    return table


def _described(kind: str) -> list[tuple[str, str]]:
    if kind == "reports":
        return sorted(catalogue.reports().items())
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
    for path in sorted(output_dir.glob(f"runs/*/*/*/seed=*/{run_folder.RECORD}")):
        if ".previous-" in path.parent.name:
            continue
        try:
            entry = run_folder.read_record(path.parent)
        except UsageError:
            table.add_row(str(path.parent), "damaged", "", "", "")
            continue
        row = entry.get("evaluation") or {}
        rate = row.get("success_rate")
        result = f"{row.get('return_mean', '')}" if rate is None else f"{rate:.1%}"
        table.add_row(
            str(path.parent),
            run_folder.status(path.parent, entry),
            str(entry.get("episodes", "")),
            str(entry.get("timesteps", "")),
            result,
        )
    return table


def _demos(output_dir: Path) -> Table:
    from rlexp.demonstrations import storage

    headings = ("file", "task", "expert", "episodes", "steps", "return", "success")
    table = Table(*headings, title="demos", title_justify="left", box=None)
    for path in storage.stored_in(catalogue.demonstrations_dir(output_dir)):
        row: tuple[str, ...]
        try:
            provenance = storage.read_header(path)["provenance"]
            expert = provenance["expert"]
            success = f"{provenance['success_rate']:.1%}" if "success_rate" in provenance else ""
            row = (
                str(provenance["task"] if "task" in provenance else provenance["env_id"]),
                str(expert.get("run", expert["kind"])),
                str(provenance["episodes"]),
                str(provenance["steps"]),
                f"{provenance['return_mean']:.2f}" if "return_mean" in provenance else "",
                success,
            )
        except (ValueError, OverflowError, KeyError, TypeError, AttributeError):
            row = ("damaged", *[""] * 5)
        table.add_row(str(path), *row)
    return table
