"""``rlexp algo=... env=...``: train one run, or with ``-m`` many."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from rlexp.cli import complete
from rlexp.cli.arguments import Parser
from rlexp.cli.result import show_result
from rlexp.config import compose as composing
from rlexp.config import hydra_app, natural, paths
from rlexp.config.diagnose import check_choices
from rlexp.config.hydra_app import HydraApp
from rlexp.errors import RunFailed, UsageError, did_you_mean
from rlexp.runs import folder as run_folder
from rlexp.runs import preflight
from rlexp.runs.messages import quoted
from rlexp.runs.train import train
from rlexp.sweep import multirun

_INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "train",
        "key=value ...",
        "Train one run or, with -m, every combination of several values. `train` may be left out.\n"
        "Run the same command again to resume; what has finished is not trained twice unless force=true.",
        "  rlexp algo=lcpo env=restaurant seed=3\n"
        "  rlexp algo=ppo env=CartPole-v1\n"
        "  rlexp -m algo=ppo,lcpo seed=0-4 hydra/launcher=joblib\n"
        "  rlexp algo=lcpo --cfg job\n"
        "A gymnasium environment of your own: env=module:Name-v0 imports the module, also from this folder.",
    )
    parsed.add_overrides("group=option, or any key of the config")
    parsed.add_argument(
        "-m", "--multirun", action="store_true", help="run every combination: seed=0-4 algo=ppo,lcpo"
    )
    parsed.add_argument(
        "-c", "--cfg", choices=("job", "hydra", "all"), help="print the config, train nothing"
    )
    parsed.add_argument("--resolve", action="store_true", help="with --cfg: resolve interpolations")
    parsed.add_argument("-p", "--package", metavar="KEY", help="with --cfg: only this part of the config")
    parsed.add_argument("-i", "--info", nargs="?", const="all", choices=_INFO, help="print what Hydra knows")
    parsed.add_argument("-cd", "--config-dir", metavar="DIR", help="a folder with configs of your own")
    parsed.add_argument("-r", "--run", action="store_true", help="run one (the default)")
    parsed.add_argument("--hydra-help", action="store_true", help="Hydra's own help")
    parsed.add_argument(
        "-sc", "--shell-completion", action="store_true", help="tab completion: rlexp -sc install=bash"
    )
    for flags in (("-cp", "--config-path"), ("-cn", "--config-name"), ("--experimental-rerun",)):
        parsed.add_argument(*flags, help=argparse.SUPPRESS)
    return parsed


def main(argv: list[str]) -> int:
    """Train, or print what the options ask for."""
    args = parser().parse(argv)
    _check_options(args)
    overrides = [natural.quoted(multirun.shell_safe(override)) for override in args.overrides]
    with hydra_app.hydra_app([args.config_dir] if args.config_dir else []) as app:
        if args.hydra_help:
            args.overrides = []  # Hydra composes them without our config, which cannot succeed
            app.print_help(parser(), args)
            return 0
        if args.shell_completion:
            return complete.answer(app, overrides)
        if args.cfg or args.info:
            return _show(app, args, natural.translate(app, overrides))
        if not args.multirun:
            try:
                train_one(app, overrides)
            except RunFailed:  # recorded and shown already
                return 1
            return 0
        jobs = [natural.translate(app, job) for job in multirun.expand(app, overrides)]
        validated = preflight.validate_all(app, jobs)
        return _run_many(app, jobs, [run.folder for run in validated])


def train_one(app: HydraApp, overrides: Sequence[str]) -> Path:
    """Train, resume or skip one run, and print what the command line prints.

    :param overrides: as typed
    :return: its folder
    :raises UsageError: when it cannot be trained; nothing is on disk then
    :raises RunFailed: when training failed
    """
    overrides = natural.translate(app, overrides)
    (validated,) = preflight.validate_all(app, [overrides])
    if validated.finished is not None:
        print(validated.finished)
    else:
        _run_one(app, overrides, validated.folder)
    return validated.folder


def _check_options(args: argparse.Namespace) -> None:
    for flag in ("config_name", "config_path"):
        if getattr(args, flag) is not None:
            raise UsageError(
                f"--{flag.replace('_', '-')}: every run has the same main config; choose options (algo=lcpo), "
                "set keys, or add a folder of your own with --config-dir"
            )
    if args.experimental_rerun is not None:
        raise UsageError(
            "--experimental-rerun: reads a pickle, which could run anything; repeat the command instead"
        )
    if args.run and args.multirun:
        raise UsageError("--run, --multirun: choose one of them")
    if args.cfg is None:
        for flag in ("resolve", "package"):
            if getattr(args, flag):
                raise UsageError(f"--{flag}: says how a config is printed; add --cfg job")


def _show(app: HydraApp, args: argparse.Namespace, overrides: list[str]) -> int:
    check_choices(app, overrides)
    cfg = composing.explained(app, overrides)
    if args.package not in (None, "_global_") and OmegaConf.select(cfg, args.package) is None:
        raise UsageError(
            f"--package: there is no '{args.package}' in the config{did_you_mean(args.package, cfg)}"
        )
    if args.cfg:
        if args.resolve:
            composing.checked(cfg)
        app.print_config(cfg, args.cfg, args.package, args.resolve)
    else:
        app.print_info(args.info, overrides)
    return 0


def _run_one(app: HydraApp, overrides: list[str], folder: Path) -> None:
    errors: list[UsageError | RunFailed] = []
    missing = [path for path in (folder, *folder.parents) if not path.exists()]

    def task(cfg: DictConfig) -> None:
        try:
            if train(cfg, paths.run_dir(cfg), hydra_app.origin()):
                show_result(folder)
        except (UsageError, RunFailed) as error:  # Hydra would wrap a traceback of its own around them
            errors.append(error)

    app.run(overrides, task)
    for error in errors:
        if isinstance(error, UsageError):
            _remove_empty(missing)
        raise error


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # not empty, or gone
            folder.rmdir()


def _run_many(app: HydraApp, jobs: list[list[str]], folders: list[Path]) -> int:
    sweep_dir = multirun.launch(app, jobs)
    unfinished = [folder for folder in folders if not _is_finished(folder)]
    print(
        f"{len(folders) - len(unfinished)} of {len(folders)} runs finished; "
        f"compare them: rlexp report sweep {quoted(sweep_dir)}"
    )
    for folder in unfinished:
        print(f"not finished: {quoted(folder)}", file=sys.stderr)
    if unfinished:
        print("run the same command again to train only what is missing", file=sys.stderr)
    return 1 if unfinished else 0


def _is_finished(folder: Path) -> bool:
    return (folder / run_folder.RECORD).exists() and run_folder.read_record(folder)["status"] == "finished"
