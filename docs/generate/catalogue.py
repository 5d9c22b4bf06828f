"""Facts about algorithms and environments, the choices in ``conf/``, and the layers of the packages."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from omegaconf import OmegaConf

from generate import settings, text
from rlexp import registry
from rlexp.config import schema, shipped
from rlexp.config.hydra_app import hydra_app
from rlexp.config.shipped import conf_dir

TOP = Path(__file__).resolve().parents[2]


def packages(kind: str) -> dict[str, list[str]]:
    """Return the names that each built-in package of ``algos`` or ``envs`` brings, by package."""
    specs = registry.algos() if kind == "algos" else registry.envs()
    found: dict[str, list[str]] = {}
    for spec in specs.values():
        parts = spec.target.partition(":")[0].split(".")
        if parts[:2] == ["rlexp", kind]:
            found.setdefault(parts[2], []).append(spec.name)
        elif kind == "algos":  # a class of Stable-Baselines3 under its own name
            found.setdefault(spec.name, []).append(spec.name)
    return found


def algorithm_facts(name: str) -> str:
    """Return what the registry knows of an algorithm."""
    spec = registry.algo(name)
    fits = [f"[`{env.name}`]({_env_page(env.name)})" for env in registry.envs().values() if _fits(spec, env)]
    rows = [
        ["Command", f"`rlexp algo={name} env=...`"],
        ["Class", f"`{spec.target.replace(':', '.')}`"],
        ["Actions", " or ".join(spec.actions)],
        ["Observations", ", ".join(spec.observations)],
        ["Action masks", "yes" if spec.masked_target else "no"],
        ["Actors in other processes", "`hardware=ray`" if spec.distributed else "no"],
        ["Compatible environments", ", ".join(fits)],
    ]
    if tuned := _tuned(algo=name):
        rows.append(["Settings of its own for", ", ".join(f"`{one}`" for one in tuned)])
    return text.table(["", ""], rows)


def environment_facts(name: str) -> str:
    """Return what the registry knows of an environment."""
    spec = registry.env(name)
    fits = [
        f"[`{one.name}`]({_algo_page(one.name)})" for one in registry.algos().values() if _fits(one, spec)
    ]
    rows = [
        ["Command", f"`rlexp algo=... env={name}`"],
        ["Actions", spec.actions or "known when it is built"],
        ["Observations", spec.observations or "known when it is built"],
    ]
    if spec.gymnasium_id:
        rows.append(["In gymnasium", f'`gymnasium.make("{spec.gymnasium_id}")`'])
    if spec.metrics:
        rows.append([f"Recorded for every {spec.episode}", ", ".join(f"`{one}`" for one in spec.metrics)])
    if spec.controllers:
        rows.append(["Reference policies", ", ".join(f"`algo={one}`" for one in spec.controllers)])
    rows.append(["Compatible algorithms", ", ".join(fits)])
    return text.table(["", ""], rows)


def choices(name: str) -> str:
    """Return the values of ``env=`` that build an environment, and what each is."""
    rows = []
    for path in sorted((conf_dir() / "env").glob("*.yaml")):
        with hydra_app() as app:
            built = app.compose([f"env={path.stem}", "algo=random"]).env.name
        if built == name:
            tuned = ", ".join(f"`{one}`" for one in _tuned(env=path.stem))
            rows.append([f"`env={path.stem}`", settings.header(path), tuned])
    return text.table(["Choice", "What it is", "Settings of their own"], rows)


def _fits(algo: registry.AlgoSpec, env: registry.EnvSpec) -> bool:
    return algo in registry.compatible_algos(env.actions, env.observations, env)


def _env_page(name: str) -> str:
    return f"../environments/{page_of('envs', name)}.md"


def _algo_page(name: str) -> str:
    return f"../algorithms/{page_of('algos', name)}.md"


def page_of(kind: str, name: str) -> str:
    """Return the page, without ending, on which something is described."""
    for package, names in packages(kind).items():
        if name in names:
            return package
    raise KeyError(name)


def _tuned(algo: str | None = None, env: str | None = None) -> list[str]:
    found = [
        path.relative_to(conf_dir() / "tuned").with_suffix("")
        for path in (conf_dir() / "tuned").rglob("*.yaml")
    ]
    if algo is not None:
        return sorted(str(path.parent).removeprefix("gym/") for path in found if path.name == algo)
    return sorted(path.name for path in found if str(path.parent) == env)


def tuned_ids() -> str:
    """Return the table of gymnasium's environments for which there are settings."""
    rows = []
    with hydra_app() as app:
        for id, algos in shipped.tuned_ids().items():
            budgets = []
            for algo in algos:
                cfg = app.compose([f"algo={algo}", "env=gym", f"env.id={id}", f"tuned=gym/{id}/{algo}"])
                budgets.append(f"`{algo}` {cfg.total_timesteps:,}")
            rows.append([f"`{id}`", ", ".join(budgets)])
    return text.table(["Environment", "Algorithm and steps"], rows)


def group(name: str) -> str:
    """Return the tables of one group of general keys and of its choices; ``config``: the keys at the top."""
    kinds = {
        "config": schema.Config,
        "hardware": schema.HardwareConfig,
        "ray": schema.RayConfig,
        "logger": schema.LoggerConfig,
        "evaluation": schema.EvaluationConfig,
        "checkpoint": schema.CheckpointConfig,
        "normalize": schema.NormalizeConfig,
    }
    with hydra_app() as app:
        whole = app.compose(["algo=random", "env=restaurant", *(["hardware=ray"] if name == "ray" else [])])
    own = settings.comments_of((conf_dir() / "config.yaml").read_text(encoding="utf-8"))
    if name == "config":
        return settings.of_group(schema.Config, whole, own)
    if name == "normalize":
        return settings.of_group(kinds[name], whole.normalize, own, name)
    if name == "ray":
        return settings.of_group(
            kinds[name], whole.hardware.ray, settings.comments("hardware", "ray"), "hardware.ray"
        )
    folder = conf_dir() / name
    described: dict[str, str] = {}
    for path in sorted(folder.glob("*.yaml")):
        described = settings.comments_of(path.read_text(encoding="utf-8")) | described
    result = settings.of_group(kinds[name], whole[name], described, name)
    listed = sorted(folder.glob("*.yaml"))
    if len(listed) > 1:
        rows = [[f"`{name}={path.stem}`", _differences(path)] for path in listed]
        result += "\n" + text.table(["Choice", "What it sets"], rows)
    return result


def _differences(path: Path) -> str:
    keys = OmegaConf.to_container(OmegaConf.load(path))
    assert isinstance(keys, dict)
    return ", ".join(
        f"`{key!s}: {value}`"
        for key, value in keys.items()
        if key != "defaults" and not isinstance(value, dict)
    )


def experiments() -> str:
    """Return the table of ``experiment=`` choices."""
    paths = sorted((conf_dir() / "experiment").glob("*.yaml"))
    return text.table(
        ["Choice", "What it is"], [[f"`experiment={p.stem}`", settings.header(p)] for p in paths]
    )


def sweeps() -> str:
    """Return the table of shipped sweeps."""
    from rlexp.reports import sweep_file

    return text.table(
        ["Sweep", "What it trains"], [[f"`{name}`", title] for name, title in sweep_file.available().items()]
    )


def layers() -> str:
    """Return the layers that import-linter enforces, the highest first, as a stack of boxes."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (stack,) = (one["layers"] for one in contracts if one["type"] == "layers")
    boxes = []
    for layer in stack:
        names = [name.strip() for name in layer.split("|")]
        inside = "".join(
            f'<div class="package"><code>{name.removeprefix("rlexp.")}</code><span>{_first_line(name)}</span></div>'
            for name in names
        )
        boxes.append(f'<div class="layer">{inside}</div>')
    return '<div class="layers">' + "".join(boxes) + "</div>\n"


def contracts() -> str:
    """Return the names of all import contracts as a list."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    return "".join(f"* {one['name']}.\n" for one in project["tool"]["importlinter"]["contracts"])


def _first_line(name: str) -> str:
    path = TOP.joinpath(*name.split("."))
    source = (path / "__init__.py") if path.is_dir() else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return (
        docstring.split("\n\n")[0]
        .replace("\n", " ")
        .replace("``", "")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )
