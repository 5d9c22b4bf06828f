"""Tab completion: commands, names of whatever they take, run folders, options; Hydra completes overrides."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path

from rlexp.cli.catalogue import COMMANDS
from rlexp.config.hydra_app import HydraApp
from rlexp.errors import UsageError

# Which file a folder must hold to be offered to a command, and what stands before it.
_RUNS = {"evaluate": "model.zip", "resume": "config.yaml", "report": "record.json", "wandb": "record.json"}
_BEFORE_RUN = {"report": ["run"], "wandb": ["show"]}
_DEEPEST, _MOST = 6, 2000  # levels of folders, and folders looked at
_SHELLS = ("bash", "fish", "zsh")


_FIRST = ("algo=", "env=", "experiment=", "-m", "--help", "--version")


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
            found = [name for name in (*COMMANDS, *_FIRST) if name.startswith(typed[0])]
            if any(name in COMMANDS for name in found):
                _print(found, shell)
                return
        app.complete(f"query={shell}")
        return
    found = [name for name in _arguments(command) if name.startswith(typed[-1])]
    if command in _RUNS and typed[1:-1] == _BEFORE_RUN.get(command, []):
        found = list(_run_folders(typed[-1], _RUNS[command]))
    _print(found, shell)


def _run_folders(typed: str, file: str) -> Iterator[str]:
    """Return the run folders whose path begins with what was typed."""
    base = typed.rpartition("/")[0]
    top = Path(base or ("/" if typed.startswith("/") else "."))
    waiting, seen = [(top, 0)], 0
    while waiting and seen < _MOST:
        folder, depth = waiting.pop(0)
        seen += 1
        if (folder / file).is_file():
            yield str(folder)
        elif depth < _DEEPEST:
            below = (one for one in sorted(folder.iterdir()) if one.is_dir() and not one.is_symlink())
            shown = (one for one in below if not one.name.startswith(".") and ".previous-" not in one.name)
            waiting += [(one, depth + 1) for one in shown if str(one).startswith(typed) or depth > 0]


def _arguments(command: str) -> list[str]:
    module = importlib.import_module(f"rlexp.cli.{command}")
    return [*getattr(module, "names", list)(), *module.parser().completions()]


def _print(found: list[str], shell: str) -> None:
    print(("\n" if shell == "fish" else " ").join(found))
