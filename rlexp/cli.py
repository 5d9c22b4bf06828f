"""The command line: find the command, hand its arguments on, and say in one line what is wrong."""

from __future__ import annotations

import importlib
import os
import sys

from rlexp import stopping
from rlexp.errors import UsageError, did_you_mean
from rlexp.imports import allow_current_folder, isolate_children
from rlexp.terminal import one_line

VERBS = {
    "train": "train one run; implied: rlexp algo=lcpo env=restaurant",
    "list": "algorithms, environments, experiments, sweeps, reports, runs, demos; what fits what",
    "demos": "record demonstrations: rlexp demos env=unlock_pickup expert=bot episodes=100",
    "evaluate": "measure a trained run again: rlexp evaluate RUN evaluation.episodes=500",
    "sweep": "train every run that a published table or figure needs: rlexp sweep table1",
    "report": "render tables and figures from run folders: rlexp report table1 --reference",
}

_GROUPS = ("algo", "env", "env/benchmark", "hardware", "logger", "evaluation", "checkpoint", "experiment")


def main(argv: list[str] | None = None) -> int:
    """Run one command line.

    :return: 0 done, 1 a run failed, 2 cannot be done as typed, 130/143 interrupted
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


def _answer(words: list[str]) -> int:
    try:
        return _dispatch(words)
    except UsageError as error:
        if _is_shown_whole():
            raise
        print(f"rlexp: {one_line(error)}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, e.g. `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # a defect of ours; what fails in training is a RunFailed, recorded and shown
        if _is_shown_whole():
            raise
        first = (str(error).splitlines() or [""])[0]
        told = one_line(f"{type(error).__name__}: {first}; RLEXP_TRACEBACK=1 shows where")
        print(f"rlexp: {told}", file=sys.stderr)
        return 2


def _is_shown_whole() -> bool:
    return stopping.requested() is not None or os.environ.get("RLEXP_TRACEBACK") == "1"


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help())
        return 0
    if words[0] == "--version":
        from rlexp import __version__

        print(f"rlexp {__version__}")
        return 0
    allow_current_folder(words)
    verb, rest = (words[0], words[1:]) if words[0] in VERBS else ("train", words)
    if verb == "train" and rest and not rest[0].startswith("-") and "=" not in rest[0]:
        raise UsageError(
            f"there is no command '{rest[0]}'; there are {', '.join(VERBS)}{did_you_mean(rest[0], VERBS)}"
        )
    command = importlib.import_module(f"rlexp.commands.{verb}")
    if "-h" in rest or "--help" in rest:
        print(command.parser().format_help(), end="")
        return 0
    return int(command.main(rest))


def _help() -> str:
    from rlexp.config.paths import conf_dir

    lines = [
        "rlexp: a command-line experiment runner for reinforcement-learning research",
        "",
        "  rlexp algo=lcpo env=restaurant               train one run; run again to resume",
        "  rlexp algo=lcpo env=restaurant force=true    train it once more",
        "  rlexp -m algo=ppo,lcpo seed=0-4              many runs; hydra/launcher=joblib runs them side by side",
        "  rlexp algo=ppo env=gym env.id=CartPole-v1 total_timesteps=50000",
        "  rlexp algo=lcpo --cfg job                    show every setting, train nothing",
        "",
        "Commands (rlexp COMMAND --help lists the options of each)",
        *(f"  {verb:10} {what}" for verb, what in VERBS.items()),
        "",
        "Choices (group=option)",
    ]
    for group in _GROUPS:
        options = sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))
        if options:
            lines.append(f"  {group + '=':15} {' '.join(options)}")
    lines += [
        "",
        "Any key of the config can be set: algo.learning_rate=3e-4 total_episodes=2000 evaluation.episodes=100",
        'Tab completion: eval "$(rlexp -sc install=bash)"    Hydra\'s own flags: rlexp --hydra-help',
        "An invalid command prints one line and exits with code 2; RLEXP_TRACEBACK=1 shows the whole traceback.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
