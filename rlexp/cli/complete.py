"""Tab completion: commands, names of sweeps, reports and lists, options; overrides are completed by Hydra."""

from __future__ import annotations

import importlib
import os

from rlexp.cli.catalogue import COMMANDS
from rlexp.config.hydra_app import HydraApp
from rlexp.errors import UsageError

_SHELLS = ("bash", "fish", "zsh")


def answer(app: HydraApp, overrides: list[str]) -> int:
    """Answer ``-sc install=SHELL``, ``uninstall=SHELL``, and ``query=SHELL``, which shells ask at every Tab.

    A query never fails: whatever it printed would land in somebody's prompt.

    :raises UsageError: when none of them is asked for
    """
    action, _, shell = overrides[0].partition("=") if len(overrides) == 1 else ("", "", "")
    if action not in ("install", "uninstall", "query") or shell not in _SHELLS:
        given = f"'{' '.join(overrides)}' given; " if overrides else ""
        raise UsageError(
            f"--shell-completion: {given}write rlexp -sc install=bash, or uninstall; shells: {', '.join(_SHELLS)}"
        )
    if action != "query":
        app.complete(overrides[0])
        return 0
    try:
        _query(app, shell)
    except (Exception, SystemExit):
        return 0
    return 0


def _query(app: HydraApp, shell: str) -> None:
    line = os.environ.get("COMP_LINE", "")
    typed = line.split()[1:] + ([""] if line.endswith(" ") else [])
    command = typed[0] if len(typed) > 1 and typed[0] in COMMANDS else None
    if command in (None, "train", "demos"):
        if command is not None:
            os.environ["COMP_LINE"] = line.replace(f" {command}", "", 1)
        if len(typed) == 1 and "=" not in typed[0]:
            found = [name for name in COMMANDS if name.startswith(typed[0])]
            if found and typed[0]:
                _print(found, shell)
                return
        app.complete(f"query={shell}")
        return
    _print([name for name in _arguments(command) if name.startswith(typed[-1])], shell)


def _arguments(command: str) -> list[str]:
    module = importlib.import_module(f"rlexp.cli.{command}")
    return [*getattr(module, "names", list)(), *module.parser().completions()]


def _print(found: list[str], shell: str) -> None:
    print(("\n" if shell == "fish" else " ").join(found))
