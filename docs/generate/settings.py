"""Tables of settings: names and ranges from the config dataclasses, values from ``conf/``, meaning from ``:param``."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from generate import text
from rlexp import registry
from rlexp.config import settings as shared
from rlexp.config.hydra_app import hydra_app
from rlexp.config.shipped import conf_dir

_GROUPS = ("algo", "env", "hardware", "logger", "evaluation", "checkpoint", "normalize")


def of_algorithm(name: str) -> str:
    """Return the table of an algorithm's settings."""
    spec = registry.algo(name)
    target = registry.load(spec.target)
    classes = list(inspect.getmro(target))
    for policy in getattr(target, "policy_aliases", {}).values():
        classes += inspect.getmro(policy)
    return _table(spec, _documented(classes), comments("algo", name))


def of_environment(name: str) -> str:
    """Return the table of an environment's settings."""
    spec = registry.env(name)
    targets = [
        registry.load(target) for target in (shared.described(spec), spec.target) if target is not None
    ]
    objects = [one for target in targets for one in (target.__mro__ if inspect.isclass(target) else [target])]
    return _table(spec, _documented(objects), comments("env", name))


def _table(
    spec: registry.AlgoSpec | registry.EnvSpec, documented: dict[str, str], described: dict[str, str]
) -> str:
    with hydra_app() as app:
        found = shared.of(app, spec)
    rows = []
    for setting in found:
        name = setting.key.partition(".")[2]
        meaning, note = documented.get(name, ""), described.get(name, "")
        if meaning and note:
            meaning += f"<br><small>{note}</small>"
        rows.append((setting, meaning or note))
    return _rows(rows)


def of_group(schema: type, values: DictConfig, described: dict[str, str], prefix: str = "") -> str:
    """Return the table of a group of general keys, e.g. ``evaluation``."""
    parts = {field.name for field in dataclasses.fields(schema) if field.name in _GROUPS}
    found = shared.of_schema(schema, values, described, prefix)
    return _rows([(one, one.meaning) for one in found if one.key not in parts])


def _rows(found: list[tuple[shared.Setting, str]]) -> str:
    rows = []
    for setting, meaning in found:
        default = "*derived*" if setting.default.startswith("${") else f"`{setting.default}`"
        default = {"`required`": "*required*", "``": "empty"}.get(default, default)
        rows.append(
            [f"`{setting.key}`", default, setting.allowed.replace(">=", "≥").replace("<=", "≤"), meaning]
        )
    return text.table(["Setting", "Default", "Allowed", "Meaning"], rows)


def _documented(objects: list[Any]) -> dict[str, str]:
    """Return the parameters that docstrings explain; the first one counts."""
    found: dict[str, str] = {}
    lesser: dict[str, str] = {}
    for one in objects:
        own = vars(one).get("__doc__") if inspect.isclass(one) else inspect.getdoc(one)
        for name, meaning in text.parameters(own).items():
            elsewhere = meaning.startswith("as in ")  # the class that is named follows, if it is a base class
            (lesser if elsewhere else found).setdefault(name, meaning)
    return lesser | found


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
