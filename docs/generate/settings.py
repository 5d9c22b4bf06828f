"""Tables of settings: names and ranges from the config dataclasses, values from ``conf/``, meaning from ``:param``."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from generate import text
from rlexp import registry
from rlexp.config.hydra_app import hydra_app
from rlexp.config.shipped import conf_dir

_NEEDS_A_VALUE = {
    "gym": "env.id=CartPole-v1",
    "atari": "env.id=pong",
    "minigrid": "env.id=MiniGrid-Empty-5x5-v0",
}


def of_algorithm(name: str) -> str:
    """Return the table of an algorithm's settings."""
    spec = registry.algo(name)
    if spec.config is None:
        return "The settings are those in its YAML file.\n"
    target = registry.load(spec.target)
    classes = list(inspect.getmro(target))
    for policy in getattr(target, "policy_aliases", {}).values():
        classes += inspect.getmro(policy)
    with hydra_app() as app:
        values = app.compose([f"algo={name}", "env=gym"]).algo
    return _table("algo", spec.config, values, _documented(classes), comments("algo", name))


def of_environment(name: str) -> str:
    """Return the table of an environment's settings."""
    spec = registry.env(name)
    if spec.config is None:
        return "The settings are those in its YAML file.\n"
    named = re.search(r":(?:class|func):`~?([\w.]+)\.(\w+)`", spec.config.__doc__ or "")
    targets = [registry.load(spec.target)]
    if named is not None:
        targets.insert(0, registry.load(f"{named[1]}:{named[2]}"))
    documented = _documented([one for target in targets for one in (inspect.getmro(target) if
                              inspect.isclass(target) else [target])])  # fmt: skip
    with hydra_app() as app:
        overrides = [f"env={name}", "algo=random", *filter(None, [_NEEDS_A_VALUE.get(name)])]
        values = app.compose(overrides).env
    return _table("env", spec.config, values, documented, comments("env", name))


def of_group(schema: type, values: DictConfig, described: dict[str, str], prefix: str = "") -> str:
    """Return the table of a group of general keys, e.g. ``evaluation``."""
    return _table(prefix, schema, values, {}, described)


def _table(
    group: str, schema: type, values: DictConfig, documented: dict[str, str], described: dict[str, str]
) -> str:
    annotations = typing.get_type_hints(schema)
    rows = []
    for field in dataclasses.fields(schema):
        if (field.name == "name" and group in ("algo", "env")) or dataclasses.is_dataclass(
            _plain(annotations[field.name])
        ):
            continue
        meaning, note = documented.get(field.name, ""), described.get(field.name, "")
        if meaning and note:
            meaning += f"<br><small>{note}</small>"
        key = f"{group}.{field.name}" if group else field.name
        rows.append(
            [
                f"`{key}`",
                _value(values, field.name),
                _allowed(annotations[field.name], field),
                meaning or note,
            ]
        )
    return text.table(["Setting", "Default", "Allowed", "Meaning"], rows)


def _plain(annotation: Any) -> Any:
    """Return the type without ``None``."""
    some = [one for one in typing.get_args(annotation) if one is not type(None)]
    return some[0] if typing.get_origin(annotation) is typing.Union and len(some) == 1 else annotation


def _value(values: DictConfig, name: str) -> str:
    if OmegaConf.is_missing(values, name):
        return "*required*"
    node = values._get_node(name)
    raw = (
        node._value() if node is not None and not isinstance(node, DictConfig | ListConfig) else values[name]
    )
    if isinstance(raw, str) and raw.startswith("${"):
        return "*derived*"
    if isinstance(raw, DictConfig | ListConfig):
        raw = OmegaConf.to_container(raw)
        if isinstance(raw, list) and len(raw) > 4:
            return f"`{raw[0]}`, ... ({len(raw)})"
    if raw is None:
        return "`null`"
    if isinstance(raw, bool):
        return f"`{str(raw).lower()}`"
    if isinstance(raw, int) and abs(raw) >= 10_000:
        return f"`{raw:_}`"
    return f"`{raw}`" if raw != "" else "empty"


def _allowed(annotation: Any, field: dataclasses.Field[Any]) -> str:
    limits = field.metadata
    optional = type(None) in typing.get_args(annotation)
    kind = _plain(annotation)
    if "choices" in limits:
        said = ", ".join(f"`{one}`" for one in limits["choices"])
    elif "automatic" in limits:
        said = f"e.g. {limits['automatic']}"
    elif "layers" in limits:
        said = "units of each layer" + (", or a list per network" if limits["layers"] == "networks" else "")
    elif kind is bool:
        said = "`true`, `false`"
    elif kind in (int, float):
        said = _range(limits, "integer" if kind is int else "number")
    else:
        said = {str: "text"}.get(kind, "list" if typing.get_origin(kind) is list else "")
    return said + (", or `null`" if optional and said else "")


def _range(limits: Any, kind: str) -> str:
    signs = {"above": ">", "at_least": "≥", "below": "<", "at_most": "≤"}
    parts = [f"{sign} {limits[name]:,}" for name, sign in signs.items() if limits.get(name) is not None]
    return f"{kind} {', '.join(parts)}" if parts else kind


def _documented(objects: list[Any]) -> dict[str, str]:
    """Return the parameters that docstrings explain; the first one counts."""
    found: dict[str, str] = {}
    for one in objects:
        own = vars(one).get("__doc__") if inspect.isclass(one) else inspect.getdoc(one)
        for name, meaning in text.parameters(own).items():
            found.setdefault(name, meaning)
    return found


def comments(group: str, name: str) -> dict[str, str]:
    """Return the comment behind every key of a YAML file, and of the file that it extends."""
    path = conf_dir() / group / f"{name}.yaml"
    if not path.is_file():
        return {}
    source = path.read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for parent in re.findall(r"^  - (\w+)$", source, flags=re.MULTILINE):
        if parent != "_self_":
            found |= comments(group, parent)
    return found | comments_of(source)


def comments_of(source: str) -> dict[str, str]:
    """Return the comments behind the keys of YAML; lines of nothing but a comment continue the one before."""
    found: dict[str, str] = {}
    key = None
    for line in source.splitlines():
        if match := re.match(r"^(\s*)(\w+):.*?(?:\s#\s?(.*))?$", line):
            key = match[2]
            if match[3]:
                found[key] = match[3].strip()
        elif key and key in found and (match := re.match(r"^\s+#\s?(.*)$", line)):
            found[key] += " " + match[1].strip()
    return found


def header(path: Path) -> str:
    """Return the comment at the top of a YAML file, in one line."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# @package"):
            continue
        if not line.startswith("#"):
            break
        lines.append(line[1:].strip())
    return " ".join(lines)
