"""The parser of every command: its help is complete, and what it cannot read is answered in one line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from rlexp.errors import UsageError, did_you_mean


class Parser(argparse.ArgumentParser):
    """Options may stand anywhere between the other arguments.

    :param command: as it is typed, e.g. ``"sweep"``
    :param description: what the command does
    :param examples: lines for the end of its help
    """

    def __init__(self, command: str, description: str, examples: str) -> None:
        super().__init__(
            prog=f"rlexp {command}",
            description=description,
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Return the arguments.

        :raises UsageError: in one line that names what cannot be read, and the nearest option
        """
        return self.parse_intermixed_args(list(argv))

    def error(self, message: str) -> NoReturn:
        """Replace argparse's usage block by one line."""
        kind, _, rest = message.partition(": ")
        if kind == "unrecognized arguments":
            message = self._unknown(rest.split()[0])
        elif rest == "expected one argument":
            message += self._choices(kind.removeprefix("argument ").split("/")[0])
        raise UsageError(f"{self.prog}: {message.removeprefix('argument ')}; see {self.prog} --help")

    def _choices(self, option: str) -> str:
        choices = next(action.choices for action in self._actions if option in action.option_strings)
        return f": {', '.join(map(str, choices))}" if choices else ""

    def _unknown(self, option: str) -> str:
        options = [name for action in self._actions for name in action.option_strings]
        name = option.lstrip("-").partition("=")[0]
        hint = did_you_mean(option, options, cutoff=0.7)
        settings = "" if hint else f"; settings are written without dashes, e.g. {name}=..."
        return f"there is no option {option}{hint or settings}"
