"""Settings of algorithms and environments: default from the YAML, range from the dataclass, meaning from ``:param``."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlexp import registry
from rlexp.config import docstrings
from rlexp.config.hydra_app import HydraApp
from rlexp.config.shipped import conf_dir

_SIGNS = {"above": ">", "at_least": ">=", "below": "<", "at_most": "<="}


@dataclasses.dataclass(frozen=True)
class Setting:
    """One key.

    :param default: as it would be typed; ``"required"`` where there is none
    :param allowed: what it can be set to, empty where everything can
    :param meaning: a sentence, empty where nobody wrote one
    """

    key: str
    default: str
    allowed: str
    meaning: str


def of(app: HydraApp, spec: registry.AlgoSpec | registry.EnvSpec, choice: str | None = None) -> list[Setting]:
    """Return the settings that can be chosen, as ``rlexp info`` shows them.

    :param choice: option of the config that stands for the environment with its own settings, e.g. ``"qbert"``
    """
    group = "algo" if isinstance(spec, registry.AlgoSpec) else "env"
    if spec.config is None:
        return []
    # An environment for which no settings of algorithms were published.
    others = ["env=pendulum_p"] if group == "algo" else ["algo=random"]
    choice = choice or spec.name
    values = app.compose([f"{group}={choice}", *others])[group]
    return [
        setting
        for setting in of_schema(spec.config, values, {**comments(group, choice), **_meanings(spec)}, group)
        if setting.key != f"{group}.name"
    ]


def of_schema(
    schema: type, values: DictConfig, meanings: Mapping[str, str], group: str = ""
) -> list[Setting]:
    """Return the settings of one dataclass.

    :param values: the group of the config that has them; a field that is not in it is left out
    :param meanings: a sentence by field
    :param group: what stands before the dot of every key, empty for keys at the top
    """
    types = typing.get_type_hints(schema)
    return [
        Setting(
            f"{group}.{field.name}" if group else field.name,
            _default(values, field.name),
            _allowed(types[field.name], field.metadata),
            meanings.get(field.name, ""),
        )
        for field in dataclasses.fields(schema)
        if field.name in values or OmegaConf.is_missing(values, field.name)
    ]


def _meanings(spec: registry.AlgoSpec | registry.EnvSpec) -> dict[str, str]:
    found = docstrings.read(spec.target).parameters
    if (target := described(spec)) is not None:
        found = {**docstrings.read(target).parameters, **found}
    return {name: text for name, text in found.items() if not text.startswith("as in ")}


def described(spec: registry.AlgoSpec | registry.EnvSpec) -> str | None:
    """Return ``"module:class"`` of what the dataclass of the settings says that they are of."""
    text = (spec.config.__doc__ or "") if spec.config is not None else ""
    named = re.search(r":(?:class|func):`~?([\w.]+)\.(\w+)`", text)
    return None if named is None else f"{named[1]}:{named[2]}"


def comments(group: str, name: str) -> dict[str, str]:
    """Return the comment behind every key of a YAML file of ours and of the one that it extends."""
    path = conf_dir() / group / f"{name}.yaml"
    if not path.is_file():
        return {}
    found: dict[str, str] = {}
    text = path.read_text(encoding="utf-8")
    for parent in re.findall(r"^  - (\w+)$", text, flags=re.MULTILINE):
        found |= comments(group, parent) if parent != "_self_" else {}
    for key, comment in re.findall(r"^(\w+):[^#\n]*#\s*(.*)$", text, flags=re.MULTILINE):
        found[key] = comment
    return found


def _default(values: DictConfig, name: str) -> str:
    if OmegaConf.is_missing(values, name):
        return "required"
    raw = OmegaConf.to_container(values, resolve=False)
    value = raw.get(name) if isinstance(raw, dict) else None
    if isinstance(value, list | dict):
        return str(value).replace("'", "").replace("None", "null")
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _allowed(annotation: Any, limits: Any) -> str:
    kinds = [one for one in (annotation, *typing.get_args(annotation)) if one is not type(None)]
    if "choices" in limits:
        said = ", ".join(map(str, limits["choices"]))
    elif "automatic" in limits:
        said = str(limits["automatic"])
    else:
        said = " and ".join(f"{sign} {limits[name]:g}" for name, sign in _SIGNS.items() if name in limits)
        if bool in kinds:
            said = "true, false"
    return said + (", null" if said and type(None) in typing.get_args(annotation) else "")
