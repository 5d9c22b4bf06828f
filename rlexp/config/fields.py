"""Field helpers: a schema says the type *and* the allowed range of a value, in one place."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from omegaconf import MISSING


def number(
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> Any:
    """A mandatory numeric field; None is allowed where the type says ``Optional``."""
    return field(
        default=MISSING, metadata={"above": above, "at_least": at_least, "below": below, "at_most": at_most}
    )


def automatic(forms: str, at_least: float | None = None) -> Any:
    """A mandatory field that is a number or ``auto``; its annotation is ``Any``.

    :param forms: what is allowed, for the message; with ``auto_`` among it a first value may be given like that
    """
    return field(default=MISSING, metadata={"automatic": forms, "at_least": at_least})


def choice(*choices: str) -> Any:
    """A mandatory field with a closed list of values."""
    return field(default=MISSING, metadata={"choices": choices})


def given() -> Any:
    """A mandatory field without further limits."""
    return field(default=MISSING)
