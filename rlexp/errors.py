"""Errors that a person can act on: one clear line each, no traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UsageError(ValueError):
    """An invalid command or setting; the command line prints it in one line and exits with code 2."""


class RunFailed(RuntimeError):
    """A run stopped with an error that has already been recorded and shown."""


class InvalidEnvOutput(RuntimeError):
    """An environment returned what its spaces or gymnasium's interface do not allow."""


class NonFiniteError(ArithmeticError):
    """A loss, metric or parameter became NaN or infinite."""


def describe(error: BaseException) -> str:
    """Return kind, message and notes of an error: ``"ValueError: no such file (environment 0, step 12)"``."""
    notes = "; ".join(getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {error}" + (f" ({notes})" if notes else "")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type where it has none."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def nearest(name: str, choices: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the choice that looks most like ``name``, or None when nothing is close."""
    matches = difflib.get_close_matches(name.lower(), list(choices), n=1, cutoff=cutoff)
    return matches[0] if matches else None


def did_you_mean(name: str, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest choice, or an empty string."""
    match = nearest(name, choices, cutoff)
    return f"; did you mean '{match}'?" if match else ""
