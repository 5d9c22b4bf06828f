"""Errors that a person can act on: one clear line each, no traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UsageError(ValueError):
    """What was typed cannot be done as it stands; the command line prints it in one line and exits with 2."""


class RunFailed(RuntimeError):
    """A run stopped with an error that has already been recorded and shown."""


class InvalidEnvOutput(RuntimeError):
    """An environment returned what its spaces or gymnasium's interface do not allow."""


class NonFiniteError(ArithmeticError):
    """A loss, metric or parameter became NaN or infinite."""


def told(error: BaseException) -> str:
    """Return kind, message and notes of an error: ``"ValueError: no such room (environment 0, step 12)"``."""
    notes = "; ".join(getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {error}" + (f" ({notes})" if notes else "")


def nearest(word: str, choices: Iterable[str], cutoff: float = 0.5) -> str | None:
    """Return the choice that looks most like ``word``, or None when nothing is close."""
    matches = difflib.get_close_matches(word.lower(), list(choices), n=1, cutoff=cutoff)
    return matches[0] if matches else None


def did_you_mean(word: str, choices: Iterable[str], cutoff: float = 0.5) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest choice, or an empty string."""
    match = nearest(word, choices, cutoff)
    return f"; did you mean '{match}'?" if match else ""
