"""``rlexp info NAME``: what an algorithm, environment, sweep or experiment is, and how it is used."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Iterator

from rlexp import registry
from rlexp.cli.arguments import Parser
from rlexp.config import docstrings, settings
from rlexp.config.hydra_app import hydra_app
from rlexp.config.shipped import conf_dir, tuned_ids
from rlexp.errors import UsageError, did_you_mean
from rlexp.reports import sweep_file
from rlexp.system.terminal import inert

_WIDTH = 80
_BUDGET = "total_timesteps=100k"


def names() -> list[str]:
    """Return what can be asked for."""
    return list(dict.fromkeys(name for found in _known().values() for name in found))


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "info",
        "[NAME ...]",
        "Explain an algorithm, environment, sweep or experiment: what it is, what it fits, its settings.",
        "  rlexp info\n  rlexp info lcpo\n  rlexp info restaurant table1",
    )
    parsed.add_names("NAME", "as in rlexp list; without it, show what there is", at_most=20)
    return parsed


def main(argv: list[str]) -> int:
    """Print what is known of every name."""
    args = parser().parse(argv)
    lines = [line for name in args.names for line in _about(name)] if args.names else list(_overview())
    for line in lines:
        print(inert(line))
    return 0


def _known() -> dict[str, list[str]]:
    return {
        "algorithms": list(registry.algos()),
        "environments": sorted(_choices()),
        "sweeps": list(sweep_file.available()),
        "experiments": sorted(path.stem for path in (conf_dir() / "experiment").glob("*.yaml")),
        "gymnasium ids with tuned settings": list(tuned_ids()),
    }


def _choices() -> set[str]:
    """Return what can be chosen as ``env=``: environments, and options that are one of them with other settings."""
    return {*registry.envs(), *(path.stem for path in (conf_dir() / "env").glob("*.yaml"))}


def _overview() -> Iterator[str]:
    yield "rlexp info NAME explains one of these:"
    for kind, found in _known().items():
        yield ""
        yield kind
        yield from _wrapped("  ".join(found), "  ")


def _about(name: str) -> list[str]:
    """:raises UsageError: when nothing is called so"""
    known = _known()
    classes = {
        spec.target.partition(":")[2].lower(): spec.name for spec in registry.algos().values() if spec.trains
    }
    ids = {str(spec.gymnasium_id).lower(): spec.name for spec in registry.envs().values()}
    name = next((found for found in names() if found.lower() == name.lower()), None) or {
        **classes,
        **ids,
    }.get(name.lower(), name)
    found: list[str] = []
    if name in known["algorithms"]:
        found += [*_algorithm(registry.algo(name)), ""]
    if name in known["environments"]:
        found += [*_environment(name), ""]
    if name in known["sweeps"]:
        found += [*_sweep(name), ""]
    if name in known["experiments"]:
        found += [*_experiment(name), ""]
    if name in tuned_ids():
        found += [*_gymnasium(name), ""]
    if not found:
        raise UsageError(
            f"info: nothing is called '{name}'{did_you_mean(name, names()) or '; rlexp info lists the names'}"
        )
    return found[:-1]


def _algorithm(spec: registry.AlgoSpec) -> Iterator[str]:
    written = docstrings.read(spec.target)
    fits = [
        env
        for env in registry.envs().values()
        if spec in registry.compatible_algos(env.actions, env.observations, env)
    ]
    yield from _title(spec.name, "algorithm", spec.summary, written)
    yield ""
    if spec.trains and spec.target.startswith("rlexp."):
        yield f"  {'class':14}rlexp.{spec.target.partition(':')[2]}"
    elif spec.trains:
        yield f"  {'class':14}{spec.target.replace(':', '.')}"
    yield f"  {'actions':14}{', '.join(spec.actions)}"
    yield f"  {'observations':14}{', '.join(spec.observations)}"
    yield from _wrapped(", ".join(env.name for env in fits), " " * 16, f"  {'environments':14}")
    if ids := [id for id, algos in tuned_ids().items() if spec.name in algos]:
        yield from _wrapped(", ".join(ids), " " * 16, f"  {'tuned for':14}")
    yield from _settings(spec)
    yield ""
    yield "examples"
    tuned = [env for env in fits if (conf_dir() / "tuned" / env.name / f"{spec.name}.yaml").is_file()]
    own = next(
        iter([*tuned, *(env for env in fits if env.name in ("restaurant", "pendulum_p")), *fits]), None
    )
    if own is not None:
        yield from _command(f"rlexp algo={spec.name} {_chosen(own, spec)}")
    if spec.config is not None and spec.trains and own is not None:
        key = " algo.learning_rate=1e-3,3e-4" if "learning_rate" in _fields(spec) else ""
        yield from _command(f"rlexp -m algo={spec.name} {_chosen(own, spec)}{key} seed=0-4")
    if any(env.name == "gym" for env in fits) and spec.trains and "demonstrations" not in _fields(spec):
        yield from _command(f"rlexp algo={spec.name} {_chosen(registry.env('gym'), spec)}")


def _environment(choice: str) -> Iterator[str]:
    with hydra_app() as app:
        spec = registry.env(str(app.compose([f"env={choice}", "algo=random"]).env.name))
    written = docstrings.read(settings.described(spec) or spec.target)
    fits = registry.compatible_algos(spec.actions, spec.observations, spec)
    of = "" if choice == spec.name else f"{spec.name} with its own settings; "
    yield from _title(choice, "environment", f"{of}{spec.summary}", written)
    yield ""
    if spec.gymnasium_id is not None:
        yield f'  {"gymnasium":14}gymnasium.make("rlexp:{spec.gymnasium_id}")'
    yield f"  {'actions':14}{spec.actions or 'any'}"
    yield f"  {'observations':14}{spec.observations or 'any'}"
    if spec.metrics:
        yield from _wrapped(", ".join(spec.metrics), " " * 16, f"  {'measures':14}")
    yield from _wrapped(", ".join(algo.name for algo in fits), " " * 16, f"  {'algorithms':14}")
    yield from _settings(spec, choice)
    yield ""
    yield "examples"
    ready = [algo for algo in fits if algo.trains and "demonstrations" not in _fields(algo)]
    tuned = [algo for algo in ready if (conf_dir() / "tuned" / choice / f"{algo.name}.yaml").is_file()]
    first = next(iter([*(algo for algo in ready if algo.name == "lcpo"), *tuned, *ready]))
    yield from _command(f"rlexp algo={first.name} {_chosen(spec, first, choice)}")
    yield from _command(f"rlexp algo=random {_chosen(spec, first, choice)}")


def _gymnasium(id: str) -> Iterator[str]:
    """Describe a gymnasium environment for which there are settings."""
    yield from _wrapped(f"{id} (gymnasium environment): env={id} stands for env=gym env.id={id}", "  ", "")
    yield ""
    yield "tuned settings"
    with hydra_app() as app:
        for algo in tuned_ids()[id]:
            cfg = app.compose([f"algo={algo}", "env=gym", f"env.id={id}", f"tuned=gym/{id}/{algo}"])
            text = (conf_dir() / "tuned" / "gym" / id / f"{algo}.yaml").read_text(encoding="utf-8")
            source = text.splitlines()[1].lstrip("# ")
            steps = f"{cfg.total_timesteps:,} steps, {cfg.hardware.n_envs} at a time"
            yield from _wrapped(f"{steps}; {source}", " " * 16, f"  {algo:14}")
    yield ""
    yield "examples"
    yield from _command(f"rlexp algo={tuned_ids()[id][0]} env={id}")
    yield from _command(f"rlexp algo={tuned_ids()[id][0]} env={id} tuned=none {_BUDGET}")


def _fields(spec: registry.AlgoSpec) -> list[str]:
    return [] if spec.config is None else [field.name for field in dataclasses.fields(spec.config)]


def _chosen(env: registry.EnvSpec, algo: registry.AlgoSpec, choice: str | None = None) -> str:
    """Return overrides that choose an environment, with what it cannot do without."""
    choice = choice or env.name
    text = f"env={choice}"
    if choice == "gym":
        id = "CartPole-v1" if "discrete" in algo.actions else "Pendulum-v1"
        text = f"env={id}"
        if algo.name in tuned_ids()[id]:
            return text
    if choice == "minigrid":
        text += " env.id=MiniGrid-Empty-5x5-v0"
    if choice == "atari":
        text += " env.id=pong"
    if "demonstrations" in _fields(algo):
        text += " algo.demonstrations=FILE.npz"
    tuned = conf_dir() / "tuned" / choice / f"{algo.name}.yaml"
    if tuned.is_file() and (needed := re.search(r"hardware\.n_envs=\d+", tuned.read_text(encoding="utf-8"))):
        text += f" {needed[0]}"
    files = [conf_dir() / "protocol" / f"{choice}.yaml", conf_dir() / "env" / f"{choice}.yaml"]
    has_budget = any(
        re.search(r"^total_", file.read_text(), re.MULTILINE) for file in files if file.is_file()
    )
    return text if has_budget else f"{text} {_BUDGET}"


def _sweep(name: str) -> Iterator[str]:
    sweep = sweep_file.load(name)
    yield from _wrapped(f"{name} (sweep): {sweep.title}", "  ", "")
    yield ""
    seeds = f"{len(sweep.seeds)} seeds" if len(sweep.seeds) > 1 else "1 seed"
    yield f"  {len(sweep.rows) * len(sweep.seeds)} runs: {len(sweep.rows)} settings, {seeds}"
    labels = [row.label for row in sweep.rows]
    more = f", ... ({len(labels)} in all)" if len(labels) > 12 else ""
    yield from _wrapped(", ".join(labels[:12]) + more, "  ")
    yield ""
    yield "examples"
    trained_by = sweep.runs_of
    yield from _command(f"rlexp sweep {trained_by} --dry-run")
    yield from _command(f"rlexp sweep {trained_by}")
    yield from _command(f"rlexp report {name}")


def _experiment(name: str) -> Iterator[str]:
    text = (conf_dir() / "experiment" / f"{name}.yaml").read_text(encoding="utf-8")
    comment = []
    for line in text.splitlines():
        if line.startswith("#") and not line.startswith("# @package"):
            comment.append(line.lstrip("# "))
        elif comment or not line.startswith("#"):
            break
    yield from _wrapped(f"{name} (experiment): {' '.join(comment)}", "  ", "")


def _title(name: str, kind: str, summary: str, written: docstrings.Documented) -> Iterator[str]:
    yield from _wrapped(f"{name} ({kind}): {summary}", "  ", "")
    for text in (*docstrings.paragraphs(written.module)[1:], *docstrings.paragraphs(written.text)):
        yield ""
        yield from _wrapped(text.partition(" Code: ")[0], "  ")


def _settings(spec: registry.AlgoSpec | registry.EnvSpec, choice: str | None = None) -> Iterator[str]:
    with hydra_app() as app:
        found = settings.of(app, spec, choice)
    if not found:
        return
    yield ""
    yield "settings (key=default; what is allowed)"
    for one in found:
        allowed = f"; {one.allowed}" if one.allowed else ""
        yield from _wrapped(f"{one.key}={one.default}{allowed}", " " * 8, "  ")
        if one.meaning:
            yield from _wrapped(one.meaning, " " * 6)


def _command(text: str) -> Iterator[str]:
    """Return a command in lines that can be pasted together."""
    *lines, last = textwrap.wrap(text, _WIDTH - 8, break_long_words=False, break_on_hyphens=False)
    for number, line in enumerate([*(f"{line} \\" for line in lines), last]):
        yield f"{'      ' if number else '  '}{line}"


def _wrapped(text: str, indent: str, first: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
