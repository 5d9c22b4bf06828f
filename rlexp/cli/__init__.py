"""The command line: one small file per command, each with ``parser()`` and ``main(argv) -> exit code``."""

from rlexp.cli.app import main

__all__ = ["main"]
