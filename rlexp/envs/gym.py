"""``env=gym``: any environment that gymnasium knows, so that a task of one's own needs no line of ours."""

from __future__ import annotations

from typing import Any

import gymnasium

import rlexp.envs  # noqa: F401  (registers our own tasks, too)
from rlexp.errors import UsageError, did_you_mean


def make(id: str, kwargs: dict[str, Any] | None = None) -> gymnasium.Env[Any, Any]:
    """Build the environment.

    :param id: a registered id, or ``module:id`` to import the module first, which runs its code; see
        :mod:`rlexp.imports` for where it may lie
    :param kwargs: passed to ``gymnasium.make``
    :raises UsageError: when there is no such environment or it refuses its arguments
    """
    try:
        return gymnasium.make(id, **(kwargs or {}))
    except gymnasium.error.UnregisteredEnv as error:
        raise UsageError(f"env.id: {error}{did_you_mean(id, gymnasium.registry)}") from error
    except Exception as error:  # an environment of somebody's own may raise anything
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        hint = ""
        if isinstance(error, ImportError) and ":" in id:
            hint = f" When env.id={id} is typed, the module is also looked for in the current folder; its code runs."
        raise UsageError(f"env.id: {id} cannot be built: {first_line}{hint}") from error
