"""From Hydra's messages to one clear line: the key, its value, what is allowed, the nearest match."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlexp.config.hydra_app import HydraApp, parse
from rlexp.config.natural import whole_numbers
from rlexp.config.renamed import new_name
from rlexp.config.shipped import conf_dir
from rlexp.config.unknown_key import explain_unknown, known_as, static_keys
from rlexp.errors import UsageError, did_you_mean, first_line


def explain(error: Exception, app: HydraApp, overrides: Sequence[str]) -> UsageError:
    """Find the override that made composition fail.

    :param error: what Hydra raised; its first line is the answer of last resort
    :param overrides: as on the command line
    """
    parsed = list(map(parse, overrides))
    for override in parsed:
        if override.is_delete() and not app.is_group(override.key_or_group):
            return UsageError(f"{override.input_line}: a key cannot be deleted; give it a value")
    known = [override for override in parsed if not (override.is_add() or override.is_delete())]
    for override in known:
        if override.is_sweep_override():
            return UsageError(
                f"{override.input_line}: several values given; add -m to run them all, or give one"
            )
        problem = _group_problem(app, override) if app.is_group(override.key_or_group) else None
        if problem:
            return UsageError(problem)
    for override in known:
        meant = known_as(override.key_or_group, override.get_value_string(), ("algo", "env"))
        if meant is not None and override.key_or_group not in ("algo", "env"):
            return UsageError(f"unknown key '{override.key_or_group}': write {meant}")
    chosen = {override.key_or_group for override in known}
    if "algo" not in chosen:
        for override in known:
            key, there_are = override.key_or_group, static_keys()
            meant = None if key in there_are else known_as(key, override.get_value_string(), there_are)
            if meant is not None and not app.is_group(key):
                return UsageError(f"unknown key '{key}': write {meant}")
        return UsageError(f"algo: not given; choose one of {', '.join(app.options('algo'))}, e.g. algo=lcpo")
    groups = [override for override in known if app.is_group(override.key_or_group)]
    try:
        base = _compose(app, groups)
    except Exception as cause:
        return UsageError(_conflict(app, cause, groups) or first_line(cause))
    for override in known:
        problem = None if app.is_group(override.key_or_group) else _value_problem(base, override)
        if problem:
            return UsageError(problem)
    return UsageError(first_line(error))


def check_added(app: HydraApp, overrides: Sequence[str]) -> UsageError | None:
    """Return what is wrong with an override ``+key=value`` of a key that there is already, None when nothing is."""
    for text in overrides:
        key = text.lstrip("+").partition("=")[0]
        if text.startswith("+") and not text.startswith("++") and (app.is_group(key) or key in static_keys()):
            return UsageError(f"{text}: a + adds a key, and the config has this one; write {text[1:]}")
    return None


def check_choices(app: HydraApp, overrides: Sequence[str]) -> None:
    """Reject an unknown option of a group; Hydra ignores it where the group is optional (``experiment=typo``).

    :param overrides: of one run
    :raises UsageError: naming the group
    """
    for override in map(parse, overrides):
        if not override.is_delete() and app.is_group(override.key_or_group):
            problem = _group_problem(app, override)
            if problem:
                raise UsageError(problem)


def _group_problem(app: HydraApp, override: Override) -> str | None:
    group, value = override.key_or_group, override.value()
    folder, slash, _ = str(value).rpartition("/")
    options = [f"{folder}{slash}{option}" for option in app.options(f"{group}/{folder}".rstrip("/"))]
    if value is None or str(value) in options or "${" in str(value):
        return None
    if group == "env" and (id := _gymnasium_id(str(value))) is not None:
        return f"env: there is no env '{value}'; did you mean env=gym env.id={id}?"
    allowed = ", ".join(options) or "none yet"
    return f"{group}: there is no {group} '{value}'; there are {allowed}{did_you_mean(str(value), options)}"


def _gymnasium_id(name: str) -> str | None:
    """Return the id of a gymnasium environment that is meant by a name without its version, None when there is none."""
    import gymnasium

    ids = [str(id) for id in gymnasium.registry]
    found = [id for id in ids if id.lower().rpartition("-v")[0] == name.lower()]
    return found[-1] if found else None


def _conflict(app: HydraApp, error: Exception, groups: list[Override]) -> str | None:
    """Say which option sets a key that another choice does not have, and which choice it was written for."""
    option = re.search(r"In '(\w+)/(\w+)': ConfigKeyError", str(error))
    key = re.search(r"full_key: ((\w+)[\w.]*)", str(error))
    if option is None or key is None:
        return None
    others = _compose(app, [override for override in groups if override.key_or_group != option[1]])
    chosen = others.hydra.runtime.choices.get(key[2])
    file = conf_dir() / option[1] / f"{option[2]}.yaml"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    meant = re.search(rf"(?:\b{key[2]}=|override /{key[2]}: )(\w+)", text)
    hint = f"; it is meant for {key[2]}={meant[1]}" if meant is not None else ""
    return f"{option[1]}={option[2]}: sets {key[1]}, which {key[2]}={chosen} does not have{hint}"


def _compose(app: HydraApp, overrides: Sequence[Override]) -> DictConfig:
    return app.compose([str(override.input_line) for override in overrides])


def override(cfg: DictConfig, overrides: Sequence[str]) -> None:
    """Set keys of a config that was composed earlier.

    :raises UsageError: when it has no such key, or the value has another type
    """
    for parsed in map(parse, whole_numbers(overrides)):
        if parsed.is_add() or parsed.is_delete() or parsed.is_sweep_override():
            raise UsageError(f"{parsed.input_line}: one value of a key that the config has can be set")
        problem = _value_problem(cfg, parsed, extensible=False)
        if problem:
            raise UsageError(problem)
        OmegaConf.update(cfg, parsed.key_or_group, parsed.value())


def _value_problem(base: DictConfig, override: Override, extensible: bool = True) -> str | None:
    key = override.key_or_group
    keys = _keys(base.hydra, "hydra.") if key.startswith("hydra.") else _keys(base)
    chosen = {group: {"name": OmegaConf.select(base, f"{group}.name")} for group in ("algo", "env")}
    if (new := new_name(key, keys, chosen)) is not None:
        return f"{key}: is now called {new}; write {new}={override.get_value_string()}"
    if key not in keys:
        answer = explain_unknown(key, override.get_value_string(), keys)
        parent = OmegaConf.select(base, key.rpartition(".")[0]) if "." in key else None
        if (
            extensible
            and not answer
            and isinstance(parent, DictConfig)
            and not dataclasses.is_dataclass(OmegaConf.get_type(parent))
        ):
            return f"{key}: not set so far; add it as +{override.input_line}"
        return answer or f"unknown key '{key}'; see `rlexp algo=... --cfg job` for all of them"
    try:
        OmegaConf.update(base.copy(), key, override.value())
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        reason = first_line(error)
        if "could not be converted to Integer" in reason:
            reason = "a whole number is needed, e.g. 100000, 1e5 or 100k"
        return f"{key}: '{override.get_value_string()}' given; {reason}"
    return None


def _keys(node: Any, prefix: str = "") -> list[str]:
    found: list[str] = []
    for key in node:
        if not prefix and key == "hydra":
            continue
        path = f"{prefix}{key}"
        found.append(path)
        child = (
            None if OmegaConf.is_missing(node, key) or OmegaConf.is_interpolation(node, key) else node[key]
        )
        if isinstance(child, DictConfig):
            found += _keys(child, f"{path}.")
    return found
