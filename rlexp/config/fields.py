"""Fields of config dataclasses: the allowed range of a setting, its former names, and whether it is the policy's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from omegaconf import MISSING


def number(
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    *,
    policy: bool = False,
    formerly: str | None = None,
) -> Any:
    """A mandatory numeric field; None is allowed where the type says ``Optional``.

    :param policy: whether the algorithm takes it inside ``policy_kwargs``; likewise in every function below
    :param formerly: the name that the setting had in configs of older runs; likewise in every function below
    """
    bounds = {"above": above, "at_least": at_least, "below": below, "at_most": at_most}
    return _field(policy, formerly, **bounds)


def added(default: Any, at_least: float | None = None, policy: bool = False) -> Any:
    """A field that configs of older runs lack; they were trained as with its default.

    A run that leaves it at the default is the same run as before there was the setting, in the same folder.

    :param default: what the setting was before it could be set
    """
    return _field(policy, default=default, at_least=at_least)


def schedule(*choices: str) -> Any:
    """A field ``<setting>_schedule`` that says how a setting changes over the budget; ``constant`` in older runs.

    The constructor has no such argument: it takes a function of the remaining progress for the setting itself.
    """
    return _field(default=choices[0], choices=choices, is_schedule=True)


def automatic(forms: str, at_least: float | None = None) -> Any:
    """A mandatory field that is a number or ``auto``; its annotation is ``Any``.

    :param forms: what is allowed, for the message; with ``auto_`` among it a first value may be given like that
    """
    return _field(automatic=forms, at_least=at_least)


def choice(
    *choices: str,
    policy: bool = False,
    formerly: str | None = None,
    former_values: Mapping[str, str] | None = None,
) -> Any:
    """A mandatory field with a closed list of values.

    :param former_values: what values of older runs are called now
    """
    return _field(policy, formerly, choices=choices, former_values=former_values)


def layers(per_network: bool = False, policy: bool = False) -> Any:
    """A mandatory list of numbers of units, one for each layer.

    :param per_network: whether it may be one list for each network, ``{pi: [64], vf: [64]}``; its annotation is then
        ``Any``
    """
    return _field(policy, layers="networks" if per_network else "one")


def required(policy: bool = False, formerly: str | None = None) -> Any:
    """A mandatory field without further limits."""
    return _field(policy, formerly)


def _field(policy: bool = False, formerly: str | None = None, default: Any = MISSING, **limits: Any) -> Any:
    known = {"policy": policy or None, "formerly": formerly, **limits}
    metadata = {name: value for name, value in known.items() if value is not None}
    if default is not MISSING:
        metadata["added"] = True
    return field(default=default, metadata=metadata)
