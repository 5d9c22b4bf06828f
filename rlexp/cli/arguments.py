"""The parser of every command, on argparse: it is there, loads in milliseconds, and Hydra's own help is written for it.

Options (``--jobs 2``) and settings (``episodes=100``) are read, converted and explained by argparse alike; overrides of
the config (``env.id=CartPole-v1``) are handed on to Hydra.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from rlexp.config.natural import whole_number
from rlexp.config.unknown_key import known_as, static_keys
from rlexp.errors import UsageError, did_you_mean


def whole(at_least: int, at_most: int | None = None) -> Callable[[str], int]:
    """Return the type of a whole number within bounds, both inclusive."""
    allowed = f"at least {at_least}" if at_most is None else f"a whole number from {at_least} to {at_most}"

    def convert(text: str) -> int:
        number = whole_number(text)
        if number is None:
            raise argparse.ArgumentTypeError(f"'{text}' given, must be a whole number")
        if number < at_least or (at_most is not None and number > at_most):
            raise argparse.ArgumentTypeError(f"{number} given, must be {allowed}")
        return number

    return convert


def truth(text: str) -> bool:
    """Convert ``true`` or ``false``."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"'{text}' given, allowed are true, false")
    return text.lower() == "true"


def _any_of(key: str) -> str:
    """Return how a group of keys, or a key of its own, is shown."""
    return f"{key}=..." if key.startswith("total_") else f"{key}.*"


class HelpShown(Exception):
    """``--help`` has been answered."""


class Parser(argparse.ArgumentParser):
    """Reads one command's arguments, in whatever order.

    :param command: its name, e.g. ``"sweep"``; empty: rlexp itself
    :param usage: the arguments after the options, e.g. ``"[NAME] [key=value ...]"``
    :param description: what the command does
    :param examples: lines for the end of its help
    """

    def __init__(self, command: str, usage: str, description: str, examples: str) -> None:
        program = f"rlexp {command}".strip()
        super().__init__(
            prog=program,
            usage=f"{program} [options] {usage}",
            description=description,
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
        self._settings = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
        self._setting_rows: dict[str, str] = {}
        self._names = 0
        self._groups: tuple[str, ...] | None = ()
        self._typed: list[str] = []

    def add_names(self, metavar: str, help: str, at_most: int = 1) -> None:
        """Accept arguments that are neither options nor ``key=value``: ``names`` of the result."""
        self.add_section("arguments", {metavar: help})
        self._names = at_most

    def add_setting(
        self, key: str, help: str, value: str = "...", type: Callable[[str], Any] = str, default: Any = None
    ) -> None:
        """Accept ``key=value``: an attribute of the result.

        :param value: how its value is shown in the help
        :param type: converts it; see :func:`whole` and :func:`truth`
        """
        self._settings.add_argument(f"--{key}", type=type, default=default)
        shown = str(default).lower() if isinstance(default, bool) else default
        self._setting_rows[f"{key}={value}"] = help if default is None else f"{help} (default: {shown})"

    def add_overrides(self, help: str, *groups: str) -> None:
        """Accept overrides of the config: ``overrides`` of the result.

        :param groups: the top-level keys that may be set; none: all of them
        """
        self._setting_rows[", ".join(map(_any_of, groups)) or "key=value"] = help
        self._groups = groups or None

    def add_section(self, title: str, rows: dict[str, str]) -> None:
        """Add lines to the help: what is typed, and what it means."""
        width = max(map(len, rows)) + 2
        lines = (f"{name:{width}}{what}".rstrip() for name, what in rows.items())
        self.add_argument_group(title, "\n".join(lines))

    def format_help(self) -> str:
        """Return the whole help: usage, arguments, settings, options, examples."""
        if self._setting_rows:
            self.add_section("settings", self._setting_rows)
            self._setting_rows = {}
        return super().format_help()

    def completions(self) -> list[str]:
        """Return what tab completion offers: options and settings."""
        options = [name for action in self._actions for name in action.option_strings if name[:2] == "--"]
        keys = [key for key in static_keys() if key.partition(".")[0] in (self._groups or ())]
        return [
            *options,
            *(f"{action.dest}=" for action in self._settings._actions),
            *(f"{key}=" for key in keys),
        ]

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Return options, settings, ``names`` and ``overrides``.

        :raises HelpShown: after ``--help``
        :raises UsageError: in one line that names what cannot be read, and the nearest match
        """
        if {"-h", "--help"} & set(argv):
            self.print_help()
            raise HelpShown
        self._typed = list(argv)
        args = self.parse_intermixed_args(self._typed)
        names, settings, overrides = self._split(args.arguments)
        try:
            self._settings.parse_args(settings, args)
        except argparse.ArgumentError as error:
            raise UsageError(str(error).removeprefix("argument --")) from error
        args.names, args.overrides = names, overrides
        return args

    def _split(self, arguments: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
        names, settings, overrides = [], [], []
        known = [action.dest for action in self._settings._actions]
        for argument in arguments:
            key, equals, _ = argument.partition("=")
            group = key.lstrip("+~").split(".")[0].split("/")[0]
            if not equals and not argument.startswith("~"):
                names.append(argument)
            elif key in known:
                settings.append(f"--{argument}")
            elif self._groups is None or group in self._groups:
                overrides.append(argument)
            elif "/" in key or os.path.exists(argument):  # noqa: PTH110  (never raises)
                names.append(argument)  # the path of a run ends in "seed=0"
            else:
                choices = [*known, *map(_any_of, self._groups)]
                raise UsageError(
                    f"{key}: not a setting of {self.prog}, which takes {', '.join(choices)}"
                    f"{did_you_mean(key, [*known, *self._groups])}"
                )
        for name in names[self._names :]:
            self.error(f"'{name}' is one argument too many; settings are written key=value")
        return names, settings, overrides

    def error(self, message: str) -> NoReturn:
        """Replace argparse's usage block by one line."""
        kind, _, rest = message.partition(": ")
        if kind == "unrecognized arguments":
            message = self._unknown(rest.split()[0])
        elif rest == "expected one argument":
            message += self._choices(kind.removeprefix("argument ").split("/")[0])
        raise UsageError(f"{message.removeprefix('argument ')}; see {self.prog} --help")

    def _choices(self, option: str) -> str:
        choices = next(action.choices for action in self._actions if option in action.option_strings)
        return f": {', '.join(map(str, choices))}" if choices else ""

    def _unknown(self, option: str) -> str:
        """Answer an option that there is not, perhaps a setting written as a flag: ``--seed 3``."""
        option, _, value = option.partition("=")
        if not value:
            at = self._typed.index(option) + 1
            following = self._typed[at] if at < len(self._typed) else "-"
            value = "..." if following.startswith("-") or "=" in following else following
        keys = [action.dest for action in self._settings._actions]
        below = self._groups
        keys += [one for one in static_keys() if below is None or one.partition(".")[0] in below]
        written = known_as(option.lstrip("-"), value, keys)
        if written is not None:
            return f"there is no option {option}; write {'force=true' if written == 'force=...' else written}"
        options = [name for action in self._actions for name in action.option_strings]
        hint = did_you_mean(option, options, cutoff=0.7)
        settings = f"; settings are written without dashes, e.g. {option.lstrip('-')}=..."
        return f"there is no option {option}{hint or settings}"
