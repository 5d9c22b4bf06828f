"""Whose code is imported: that of installed packages and of PYTHONPATH; of the current folder for who asks for it.

``env.id=module:Name``, or ``env=module:Name``, makes gymnasium import ``module``, which runs its code. Typed in a
command it may be in the current folder. Read from a run's config it may be neither there nor in the run folder: that
config may be untrusted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from rlexp.errors import UsageError


def isolate_children() -> None:
    """Let no Python process that is started from here look for modules in its working directory first."""
    os.environ["PYTHONSAFEPATH"] = "1"


def allow_current_folder(arguments: Iterable[str]) -> None:
    """Import from the current folder, after everything that is installed, when an argument names a module."""
    if any(_names_module(argument) for argument in arguments) and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))


def _names_module(argument: str) -> bool:
    key, _, value = argument.partition("=")
    return key.lstrip("+") in ("env", "env.id") and ":" in value


def exclude(folder: Path, env_id: str | None) -> None:
    """Never import what a run folder provides.

    :param folder: run folder; whatever of the path leads into it is taken off
    :param env_id: what its config says; not what was typed
    :raises UsageError: when it names a module of Python's own, some of which do things when they are imported
    """
    inside, installed = folder.resolve(), Path(sys.prefix).resolve()
    for entry in list(sys.path):
        path = Path(entry or ".").resolve()
        if path.is_relative_to(inside) and not path.is_relative_to(installed):
            sys.path.remove(entry)
    module = (env_id or "").rpartition(":")[0].partition(".")[0]
    if module in sys.stdlib_module_names:
        raise UsageError(
            f"{folder}: config.yaml names the module '{module}' (env.id={env_id}), which is not an environment's and "
            "is not imported"
        )
