"""Whether settings are within the ranges of their dataclass: the same check for a command line and a constructor."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from rlexp.errors import UsageError, did_you_mean

_LARGEST_INT = 2**63 - 1  # what NumPy and torch count with
_LARGEST_FLOAT = 3.4e38  # what they compute with: float32
_BOUNDS = (
    ("greater than", "above", operator.gt),
    ("at least", "at_least", operator.ge),
    ("less than", "below", operator.lt),
    ("at most", "at_most", operator.le),
)


def validate(config: type[Any], settings: Mapping[str, Any], n_envs: int) -> None:
    """Check the settings of an algorithm that is built.

    Classes and schedules are passed over, as is infinity where None would be allowed: both mean no limit.

    :param config: dataclass of its settings; its ``check_together``, where it has one, says which values contradict
        one another
    :param settings: by name; others than those of the dataclass are passed over, and some may be missing
    :param n_envs: environments that it is trained on
    :raises UsageError: naming the setting, what was given and what is allowed
    """
    for one in dataclasses.fields(config):
        value = settings.get(one.name)
        no_limit = value == math.inf and str(one.type).startswith("Optional") if _is_number(value) else False
        if not callable(value) and not no_limit:
            check_value(one.name, value, one.metadata)
    check_together = getattr(config, "check_together", None)
    if check_together is not None:
        check_together(settings, n_envs)


def check_setting(config: type[Any], name: str, value: Any) -> None:
    """Check one setting that a constructor needs at once.

    :raises UsageError: when it is not allowed
    """
    (limits,) = (one.metadata for one in dataclasses.fields(config) if one.name == name)
    check_value(name, value, limits)


def check_value(name: str, value: Any, limits: Mapping[str, Any]) -> None:
    """Check one value.

    :param name: for the message
    :param limits: metadata of its field
    :raises UsageError: when it is not allowed
    """
    if "layers" in limits:
        _check_layers(name, value, limits["layers"] == "networks")
        return
    choices = limits.get("choices")
    if choices and value is not None and value not in choices:
        now = limits.get("former_values", {}).get(value) if isinstance(value, str) else None
        hint = f"; '{value}' is now called '{now}'" if now else did_you_mean(str(value), choices)
        raise UsageError(f"{name}: '{value}' given, allowed are {', '.join(choices)}{hint}")
    shown = value
    if limits.get("automatic") and value is not None:
        value = _automatic(name, value, limits["automatic"])
    if _is_number(value):
        _check_number(name, value, shown, limits)


def _check_number(name: str, value: Any, shown: Any, limits: Mapping[str, Any]) -> None:
    if not math.isfinite(value):
        raise UsageError(f"{name}: {value} given, a finite number is needed")
    largest = _LARGEST_INT if isinstance(value, Integral) else _LARGEST_FLOAT
    if abs(value) > largest:
        raise UsageError(f"{name}: {value:g} given, must be at most {largest:g}")
    bounds = [(text, limits[key], holds) for text, key, holds in _BOUNDS if key in limits]
    if not all(holds(value, bound) for _, bound, holds in bounds):
        allowed = " and ".join(f"{text} {bound}" for text, bound, _ in bounds)
        raise UsageError(f"{name}: {shown} given, must be {allowed}")


def _automatic(name: str, value: Any, forms: str) -> float | None:
    """Return the number in ``auto``, ``auto_0.1`` or ``0.1``; None where there is none."""
    start = value.removeprefix("auto_") if isinstance(value, str) and "auto_" in forms else value
    if value == "auto":
        return None
    if _is_number(start):
        return float(start)
    try:
        if start is value:
            raise ValueError
        return float(start)
    except ValueError:
        raise UsageError(f"{name}: '{value}' given, allowed are {forms}") from None


def _check_layers(name: str, value: Any, per_network: bool) -> None:
    if value is None:
        return
    networks = value.values() if per_network and isinstance(value, Mapping) else [value]
    for units in networks:
        if not isinstance(units, (list, tuple)) or not all(_is_size(n) for n in units):
            more = ", or one list per network, e.g. {pi:[64],vf:[64]}" if per_network else ""
            raise UsageError(
                f"{name}: {value} given, a list of positive numbers of units is needed, e.g. [64,64]{more}"
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_size(n: Any) -> bool:
    return isinstance(n, Integral) and not isinstance(n, bool) and int(n) > 0


def former_names(config: type[Any]) -> dict[str, str]:
    """Return what settings with a former name are called now."""
    fields = dataclasses.fields(config)
    return {one.metadata["formerly"]: one.name for one in fields if "formerly" in one.metadata}


def policy_settings(config: type[Any]) -> tuple[str, ...]:
    """Return the settings that an algorithm takes inside ``policy_kwargs``."""
    return tuple(one.name for one in dataclasses.fields(config) if one.metadata.get("policy"))
