"""Keys that once had another name or were not there: on the command line, in configs of older runs, in folder names.

A setting of an algorithm or an environment names its former name and values in its dataclass (``formerly=``,
``former_values=``); the tables below are for general keys. What they say of ``algo`` or ``env`` counts only where the
schema of the chosen one has the new name and not the old one, so that a plug-in package may use either name for a
setting of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

RENAMED: dict[str, str] = {
    "checkpoint.keep": "checkpoint.keep_last",
    "hardware.ray.ladder": "hardware.ray.per_actor_epsilon",
    "hardware.ray.pace": "hardware.ray.update_ratio",
    "logger.wandb": "logger.mode",
}
"""Old dotted key to new dotted key, below the same parent."""

RENAMED_VALUES: dict[str, dict[str, str]] = {}
"""New dotted key to its old values and what they are called now."""

_Translate = Callable[[str, Any, Mapping[str, Any]], "tuple[str, Any]"]


def new_name(key: str, keys: Collection[str], config: Mapping[str, Any]) -> str | None:
    """Return the present name of a key, or None.

    :param key: dotted, as it was typed
    :param keys: dotted keys that the composed config has; only one of them is returned
    :param config: plain containers; the chosen algorithm and environment count
    """
    new = _new_names(config).get(key)
    return new if new in keys and key not in keys else None


def _new_names(config: Mapping[str, Any]) -> dict[str, str]:
    return RENAMED | {
        f"{group}.{field.metadata['formerly']}": f"{group}.{field.name}"
        for group in ("algo", "env")
        for field in (_fields(config, f"{group}.") or {}).values()
        if "formerly" in field.metadata
    }


def _new_values(config: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    return RENAMED_VALUES | {
        f"{group}.{field.name}": field.metadata["former_values"]
        for group in ("algo", "env")
        for field in (_fields(config, f"{group}.") or {}).values()
        if "former_values" in field.metadata
    }


def with_new_names(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config that an older version may have written, with the present names.

    :param config: plain containers as read from a ``config.yaml``; not changed
    """

    new_names, new_values = _new_names(config), _new_values(config)

    def translate(path: str, value: Any, siblings: Mapping[str, Any]) -> tuple[str, Any]:
        new = new_names.get(path, path)
        if new != path and (_leaf(new) in siblings or not _has_key(config, new, instead_of=path)):
            new = path
        renamed = new_values.get(new, {}).get(value) if isinstance(value, str) else None
        return new, renamed if renamed is not None and _has_value(config, new, renamed, value) else value

    return _walk(config, "", translate)


def with_old_names(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config with the names that its keys had at first: hashes of unchanged settings stay the same.

    :param config: plain containers with the present names; not changed
    """
    old_keys = {new: old for old, new in _new_names(config).items()}
    new_values = _new_values(config)

    def translate(path: str, value: Any, siblings: Mapping[str, Any]) -> tuple[str, Any]:
        old = old_keys.get(path, path)
        if old != path and (_leaf(old) in siblings or not _has_key(config, path, instead_of=old)):
            old = path
        for old_value, renamed in new_values.get(path, {}).items():
            if value == renamed and _has_value(config, path, renamed, old_value):
                return old, old_value
        return old, value

    return _walk(config, "", translate)


def without_additions(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config without the settings that older versions lacked, where they are as those had them.

    :param config: plain containers; not changed
    """
    found = dict(config)
    for group in ("algo", "env"):
        fields = _fields(config, f"{group}.") or {}
        if isinstance(config.get(group), Mapping):
            found[group] = {
                key: value
                for key, value in config[group].items()
                if not (key in fields and fields[key].metadata.get("added") and value == fields[key].default)
            }
    return found


def _walk(node: Mapping[str, Any], prefix: str, translate: _Translate) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in node.items():
        path, value = translate(f"{prefix}{key}", value, node)
        found[_leaf(path)] = _walk(value, f"{prefix}{key}.", translate) if isinstance(value, dict) else value
    return found


def _leaf(path: str) -> str:
    return path.rpartition(".")[2]


def _has_key(config: Mapping[str, Any], key: str, instead_of: str) -> bool:
    fields = _fields(config, key)
    return fields is None or (_leaf(key) in fields and _leaf(instead_of) not in fields)


def _has_value(config: Mapping[str, Any], key: str, value: str, instead_of: str) -> bool:
    fields = _fields(config, key)
    if fields is None:
        return True
    choices = fields[_leaf(key)].metadata.get("choices", ()) if _leaf(key) in fields else ()
    return value in choices and instead_of not in choices


def _fields(config: Mapping[str, Any], key: str) -> dict[str, dataclasses.Field[Any]] | None:
    """Return the fields of the chosen algorithm or environment, none for an unknown one; None for general keys."""
    group = key.partition(".")[0]
    if group not in ("algo", "env"):
        return None
    from rlexp.config.schema import schemas

    chosen = config.get(group)
    schema = schemas().get(f"schema/{group}/{chosen.get('name')}") if isinstance(chosen, dict) else None
    return {} if schema is None else {field.name: field for field in dataclasses.fields(schema)}
