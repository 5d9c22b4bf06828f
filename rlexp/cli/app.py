"""The command line: find the command, pass its arguments on, and answer errors in one line."""

from __future__ import annotations

import importlib
import os
import sys

from rlexp.cli.arguments import HelpShown, Parser
from rlexp.cli.catalogue import COMMANDS
from rlexp.errors import UsageError, did_you_mean, first_line
from rlexp.system import stopping
from rlexp.system.imports import allow_current_folder, isolate_children
from rlexp.system.terminal import one_line

_GROUPS = ("algo", "env", "env/benchmark", "hardware", "logger", "evaluation", "checkpoint", "experiment")


def main(argv: list[str] | None = None) -> int:
    """Run one command line.

    :return: 0 done, 1 a run failed, 2 the command is invalid, 130/143 interrupted
    """
    requested = None
    try:
        with stopping.listening(whole_process=argv is None):
            try:
                if argv is None and (parent := os.environ.pop(stopping.PARENT, None)):
                    stopping.follow_parent(int(parent))
                isolate_children()
                code = _answer(list(sys.argv[1:] if argv is None else argv))
            finally:
                requested = stopping.requested()
    except stopping.Stopped as stop:
        return stop.exit_code
    except BaseException:  # libraries turn an interruption into errors of their own
        if requested is None or os.environ.get("RLEXP_TRACEBACK") == "1":
            raise
    return code if requested is None else 128 + requested


def parser() -> Parser:
    """Return the parser of ``rlexp`` itself, whose help is the overview."""
    from rlexp.config.shipped import conf_dir

    parsed = Parser(
        "",
        "[COMMAND] [key=value ...]",
        "A command-line experiment runner for reinforcement-learning research.",
        "  rlexp algo=lcpo env=restaurant               train one run; run again to resume\n"
        "  rlexp algo=lcpo env=restaurant force=true    train it from scratch\n"
        "  rlexp -m algo=ppo,lcpo seed=0-4              many runs; hydra/launcher=joblib runs them side by side\n"
        "  rlexp algo=ppo env=CartPole-v1\n"
        "  rlexp algo=lcpo --cfg job                    print every setting, train nothing\n"
        "\n"
        'Tab completion: eval "$(rlexp -sc install=bash)"    Hydra\'s own options: rlexp --hydra-help\n'
        "An invalid command prints one line, exits with code 2 and writes nothing; "
        "RLEXP_TRACEBACK=1 shows the traceback.",
    )
    parsed.add_section("commands (rlexp COMMAND --help shows the arguments of each)", COMMANDS)
    options = {
        f"{group}=": " ".join(sorted(path.stem for path in (conf_dir() / group).glob("*.yaml")))
        for group in _GROUPS
    }
    parsed.add_section("choices (group=option)", {group: names for group, names in options.items() if names})
    parsed.add_section(
        "settings (any key of the config)",
        {"algo.learning_rate=3e-4 total_episodes=2000 evaluation.episodes=100": ""},
    )
    parsed.add_argument("--version", action="store_true", help="print the version")
    return parsed


def _answer(arguments: list[str]) -> int:
    try:
        return _dispatch(arguments)
    except UsageError as error:
        if _shows_tracebacks():
            raise
        print(f"rlexp: {one_line(error)}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, e.g. `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # a defect of ours; what fails in training is a RunFailed, recorded and shown
        if _shows_tracebacks():
            raise
        message = f"{type(error).__name__}: {first_line(error)}; RLEXP_TRACEBACK=1 shows where"
        print(f"rlexp: {one_line(message)}", file=sys.stderr)
        return 2


def _shows_tracebacks() -> bool:
    return stopping.requested() is not None or os.environ.get("RLEXP_TRACEBACK") == "1"


def _dispatch(arguments: list[str]) -> int:
    first = arguments[0] if arguments else "--help"
    if first in ("-h", "--help", "help"):
        parser().print_help()
        return 0
    if first == "--version":
        from rlexp import __version__

        print(f"rlexp {__version__}")
        return 0
    allow_current_folder(arguments)
    if first in COMMANDS:
        name, arguments = first, arguments[1:]
    elif first.startswith("-") or "=" in first:
        name = "train"
    else:
        raise UsageError(f"there is no command '{first}'; {_meant(first)}")
    try:
        return int(importlib.import_module(f"rlexp.cli.{name}").main(arguments))
    except HelpShown:
        return 0


def _meant(word: str) -> str:
    from rlexp import registry

    for group, names in (("algo", registry.algos()), ("env", registry.envs())):
        if word in names:
            return f"to train, write {group}={word}"
    return f"there are {', '.join(COMMANDS)}{did_you_mean(word, COMMANDS)}"


if __name__ == "__main__":
    sys.exit(main())
