"""From Hydra's messages to one clear line: which key, what was given, what is allowed, what was probably meant."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlexp.config.paths import conf_dir
from rlexp.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from hydra._internal.hydra import Hydra
    from hydra.core.config_loader import ConfigLoader


def explain(error: Exception, hydra: Hydra, overrides: Sequence[str]) -> UsageError:
    """Find which of the words made composition fail.

    :param error: what Hydra raised; its first line is the answer of last resort
    :param overrides: the words as typed
    """
    parsed = [parse(word) for word in overrides]
    for override in parsed:
        if override.is_delete() and not _is_group(hydra, override):
            return UsageError(f"{override.input_line}: a key cannot be deleted; give it a value")
    known = [override for override in parsed if not (override.is_add() or override.is_delete())]
    for override in known:
        if override.is_sweep_override():
            return UsageError(
                f"{override.input_line}: several values given; add -m to run them all, or give one"
            )
        problem = _group_problem(hydra, override) if _is_group(hydra, override) else None
        if problem:
            return UsageError(problem)
    chosen = {override.key_or_group for override in known}
    if "algo" not in chosen:
        return UsageError(
            f"algo: not given; choose one of {', '.join(_options(hydra, 'algo'))}, e.g. algo=lcpo"
        )
    groups = [override for override in known if _is_group(hydra, override)]
    try:
        base = _compose(hydra, groups)
    except Exception as cause:
        return UsageError(_conflict(cause, groups, hydra) or first_line(cause))
    for override in known:
        problem = None if _is_group(hydra, override) else _value_problem(base, override)
        if problem:
            return UsageError(problem)
    return UsageError(first_line(error))


def parse(word: str, config_loader: ConfigLoader | None = None) -> Override:
    """Parse one ``key=value``.

    :param config_loader: knows the options of a group, so that ``algo=glob(r2*)`` can be enumerated
    :raises UsageError: when it is none
    """
    try:
        override = OverridesParser.create().parse_override(word)
        override.config_loader = config_loader
        return override
    except HydraException as error:
        reason = first_line(error)
        raise UsageError(
            f"{word}: cannot be read ({reason}); write key=value, quoted where the shell needs it"
        ) from error


def _is_group(hydra: Hydra, override: Override) -> bool:
    return bool(hydra.config_loader.list_groups("")) and _group_exists(hydra, override.key_or_group)


def _group_exists(hydra: Hydra, group: str) -> bool:
    repository = hydra.config_loader.get_sources()
    return not group.startswith("schema") and any(source.is_group(group) for source in repository)


def _options(hydra: Hydra, group: str) -> list[str]:
    return sorted(
        option
        for option in hydra.config_loader.get_group_options(group, ObjectType.CONFIG)
        if not option.startswith("_")
    )


def check_choices(hydra: Hydra, overrides: Sequence[str]) -> None:
    """Refuse a choice that there is not; Hydra passes over it where the group is optional (``experiment=typo``).

    :param overrides: of one run
    :raises UsageError: naming the group
    """
    for override in map(parse, overrides):
        if not override.is_delete() and _is_group(hydra, override):
            problem = _group_problem(hydra, override)
            if problem:
                raise UsageError(problem)


def _group_problem(hydra: Hydra, override: Override) -> str | None:
    group, value = override.key_or_group, override.value()
    folder, slash, _ = str(value).rpartition("/")
    options = [f"{folder}{slash}{option}" for option in _options(hydra, f"{group}/{folder}".rstrip("/"))]
    if value is None or str(value) in options or "${" in str(value):
        return None
    allowed = ", ".join(options) or "none yet"
    return f"{group}: there is no {group} '{value}'; there are {allowed}{did_you_mean(str(value), options)}"


def _conflict(error: Exception, groups: list[Override], hydra: Hydra) -> str | None:
    """Say which option sets a key that another choice does not have, and which choice it was written for."""
    option = re.search(r"In '(\w+)/(\w+)': ConfigKeyError", str(error))
    key = re.search(r"full_key: ((\w+)[\w.]*)", str(error))
    if option is None or key is None:
        return None
    others = _compose(hydra, [override for override in groups if override.key_or_group != option[1]])
    chosen = others.hydra.runtime.choices.get(key[2])
    file = conf_dir() / option[1] / f"{option[2]}.yaml"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    meant = re.search(rf"(?:\b{key[2]}=|override /{key[2]}: )(\w+)", text)
    hint = f"; it is meant for {key[2]}={meant[1]}" if meant is not None else ""
    return f"{option[1]}={option[2]}: sets {key[1]}, which {key[2]}={chosen} does not have{hint}"


def _compose(hydra: Hydra, overrides: list[Override]) -> DictConfig:
    from rlexp.commands.compose import compose_with

    return compose_with(hydra, [str(override.input_line) for override in overrides])


def _value_problem(base: DictConfig, override: Override) -> str | None:
    key = override.key_or_group
    keys = _keys(base.hydra, "hydra.") if key.startswith("hydra.") else _keys(base)
    if key not in keys:
        depth = key.count(".")
        hint = did_you_mean(key, [k for k in keys if k.count(".") == depth])
        parent = OmegaConf.select(base, key.rpartition(".")[0]) if depth else None
        if (
            not hint
            and isinstance(parent, DictConfig)
            and not dataclasses.is_dataclass(OmegaConf.get_type(parent))
        ):
            return f"{key}: not set so far; add it as +{override.input_line}"
        if not hint:  # the right leaf below a wrong parent
            leaf = key.rpartition(".")[2]
            hint = did_you_mean(
                leaf,
                [k for k in keys if k.rpartition(".")[2] == leaf] or [k.rpartition(".")[2] for k in keys],
            )
        return f"{key}: there is no such key{hint or '; see `rlexp algo=... --cfg job` for all of them'}"
    try:
        OmegaConf.update(base.copy(), key, override.value())
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        return f"{key}: '{override.get_value_string()}' given; {first_line(error)}"
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


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type where it has none."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
