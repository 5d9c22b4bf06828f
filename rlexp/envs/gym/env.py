"""``env=gym``: any environment registered with gymnasium."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import gymnasium

from rlexp.errors import UsageError, did_you_mean
from rlexp.system.extras import require

# Package and extra behind environments, by how their id or the module of their code begins.
_PACKAGES = {
    "gymnasium.envs.box2d": ("Box2D", "box2d"),
    "gymnasium.envs.mujoco": ("mujoco", "mujoco"),
    "MiniGrid-": ("minigrid", "minigrid"),
    "BabyAI-": ("minigrid", "minigrid"),
    "MinAtar/": ("minatar", "minatar"),
    "ALE/": ("ale_py", "atari"),
}


def make(id: str, kwargs: dict[str, Any] | None = None) -> gymnasium.Env[Any, Any]:
    """Build the environment.

    :param id: a registered id, or ``module:id`` to import the module first, which runs its code; see
        :mod:`rlexp.system.imports` for where it may lie
    :param kwargs: passed to ``gymnasium.make``
    :raises UsageError: when there is no such environment, the package behind it is missing or it rejects its arguments
    """
    _require_package(id)
    try:
        return gymnasium.make(id, **(kwargs or {}))
    except gymnasium.error.UnregisteredEnv as error:
        raise UsageError(f"env.id: {str(error).rstrip('.')}{did_you_mean(id, gymnasium.registry)}") from error
    except Exception as error:  # a custom environment may raise anything
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        hint = ""
        if isinstance(error, ImportError) and ":" in id:
            hint = f" When env.id={id} is typed, the module is also looked for in the current folder; its code runs."
        raise UsageError(f"env.id: {id} cannot be built: {first_line}{hint}") from error


def _require_package(id: str) -> None:
    """Import the package behind an environment.

    :raises UsageError: with the line to type when it is missing
    """
    known = gymnasium.registry.get(id)
    code = "" if known is None else str(known.entry_point)
    for beginning, (package, extra) in _PACKAGES.items():
        if id.startswith(beginning) or code.startswith(beginning):
            require(package, extra, f"env.id={id}")
            if id not in gymnasium.registry:  # importing it registers its environments
                import_module(package)
