"""The reference of the command line, from the parsers."""

from __future__ import annotations

import importlib
import os

from rlexp.cli.app import parser
from rlexp.cli.catalogue import COMMANDS


def reference() -> str:
    """Return the help of every command."""
    os.environ["COLUMNS"] = "100"
    parts = ["# Commands", "", "What `rlexp --help` and `rlexp COMMAND --help` print.", "", "## rlexp", ""]
    parts += ["```text", parser().format_help().rstrip(), "```", ""]
    for name in COMMANDS:
        shown = importlib.import_module(f"rlexp.cli.{name}").parser().format_help().rstrip()
        parts += [f"## rlexp {name}", "", "```text", shown, "```", ""]
    return "\n".join(parts)
