"""Overrides as people type them: ``total_timesteps=100k`` and ``env=CartPole-v1``, turned into what the config says.

Each run's overrides are translated before Hydra composes them, and a sweep is enumerated before that. What is composed,
recorded and hashed is the plain form.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from rlexp import registry
from rlexp.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from rlexp.config.hydra_app import HydraApp

_NUMBER = re.compile(
    r"(?P<digits>[+-]?\d[\d_]*(?:\.\d+)?)(?:[eE](?P<exponent>[+-]?\d{1,2})|(?P<unit>[kKmM]))?"
)
_UNITS = {"k": 3, "m": 6}
_GYMNASIUM_ID = re.compile(r"[\w./-]+-v\d+|[\w.]+:[\w./-]+")
_VERSIONED = re.compile(r"(?P<name>[\w.-]+)-v(?P<version>\d+)")
# What RL-Zoo and many tutorials name, which gymnasium no longer builds; what differs is a fault in its reset.
_REPLACED = {
    "LunarLander-v2": "LunarLander-v3",
    "LunarLanderContinuous-v2": "LunarLanderContinuous-v3",
}


def whole_number(text: str) -> int | None:
    """Return the integer that ``100k``, ``1.5M``, ``1e5`` or ``50_000`` stands for; None when it is not exactly one."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    exponent = int(match["exponent"] or 0) if match["unit"] is None else _UNITS[match["unit"].lower()]
    number = Decimal(match["digits"].replace("_", "")).scaleb(exponent)
    return int(number) if number == number.to_integral_value() else None


def whole_numbers(overrides: Sequence[str]) -> list[str]:
    """Return overrides in which the values of integer keys are plain integers, where they are integers at all."""
    return [_plain(text) for text in overrides]


def _plain(text: str) -> str:
    key, _, value = text.partition("=")
    number = whole_number(value) if key.lstrip("+") in _integer_keys() else None
    return text if number is None else f"{key}={number}"


def translate(app: HydraApp, overrides: Sequence[str]) -> list[str]:
    """Return the overrides of one run in their plain form.

    :param overrides: as typed, of a sweep those of one of its runs
    :raises UsageError: when an environment is named twice, or there is none of its name
    """
    found: list[str] = []
    for text in overrides:
        key, _, value = text.partition("=")
        if key == "env" and _GYMNASIUM_ID.fullmatch(value) and value not in app.options("env"):
            others = [
                other for other in overrides if other.startswith("env.id=") and other != f"env.id={value}"
            ]
            if others:
                raise UsageError(f"{text}: given beside {others[0]}; write one of them")
            found += _environment(value)
        elif text in ("normalize=true", "normalize=false"):  # as RL-Zoo has it
            found += [f"normalize.{part}={value}" for part in ("observations", "rewards")]
        elif text == "tuned=null":  # Hydra cannot leave out an option that others choose
            found.append("tuned=none")
        elif key == "env.id" and value in _REPLACED:
            found.append(f"env.id={_REPLACED[value]}")
        else:
            found.append(_plain(quoted(text)))
    return _tuned(app, found)


def _tuned(app: HydraApp, overrides: list[str]) -> list[str]:
    """Choose the settings that are there for an algorithm on a gymnasium environment, ``tuned/gym/<id>/<algo>.yaml``.

    Hydra chooses by groups alone, and the id is a key. An id of another version has the settings of the nearest one.
    """
    values = {key: value for key, _, value in (text.partition("=") for text in overrides)}
    match = _VERSIONED.fullmatch(values.get("env.id", ""))
    if match is None or values.get("env") != "gym" or "tuned" in values:
        return overrides
    versions = [found for each in app.groups("tuned/gym") if (found := _VERSIONED.fullmatch(each))]
    same = [found for found in versions if found["name"] == match["name"]]
    for found in sorted(same, key=lambda one: abs(int(one["version"]) - int(match["version"]))):
        if values.get("algo") in app.options(f"tuned/gym/{found[0]}"):
            return [*overrides, f"tuned=gym/{found[0]}/{values['algo']}"]
    return overrides


def quoted(text: str) -> str:
    """Quote the path of a run, which ends in ``seed=0``: Hydra would stumble over the second ``=``."""
    key, _, value = text.partition("=")
    if key.removeprefix("algo.") != "init_from":
        return text
    if "=" in value and not value.startswith(("'", '"')):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        value = f"'{escaped}'"
    return f"init_from={value}"


def _environment(id: str) -> list[str]:
    id = _REPLACED.get(id, id)
    ours = {
        spec.gymnasium_id: name for name, spec in registry.envs().items() if spec.gymnasium_id is not None
    }
    if id in ours:
        return [f"env={ours[id]}"]
    family = next(
        (name for name, spec in registry.envs().items() if id.startswith(spec.gymnasium_families)), None
    )
    if family is None and not re.search(
        "[:/]", id
    ):  # others may be registered by a package that is not imported yet
        import gymnasium

        if id not in gymnasium.registry:
            raise UsageError(f"env: there is no environment '{id}'{did_you_mean(id, gymnasium.registry)}")
    return [f"env={family or 'gym'}", f"env.id={id}"]


@cache
def _integer_keys() -> frozenset[str]:
    """Return the keys that are integers, for any algorithm and environment."""
    from rlexp.config.schema import schemas

    found: set[str] = set()
    for path, schema in schemas().items():
        group = path.split("/")[1]
        found |= set(_integers(schema, "" if group == "config" else f"{group}."))
    return frozenset(found)


def _integers(schema: Any, prefix: str) -> Iterator[str]:
    for name, kind in typing.get_type_hints(schema).items():
        kinds = [one for one in (kind, *typing.get_args(kind)) if typing.get_origin(kind) is not list]
        if int in kinds:
            yield f"{prefix}{name}"
        for one in kinds:
            if dataclasses.is_dataclass(one):
                yield from _integers(one, f"{prefix}{name}.")
