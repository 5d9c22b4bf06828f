"""``rlexp algo=... env=...``: train one run, or with ``-m`` many."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlexp import record, stopping, terminal
from rlexp.commands import complete, multirun, preflight, workers
from rlexp.commands import compose as composing
from rlexp.commands.arguments import Parser
from rlexp.commands.diagnose import check_choices, explain, first_line
from rlexp.commands.messages import finished_line, short, summary
from rlexp.config import paths
from rlexp.errors import RunFailed, UsageError, did_you_mean, told

_INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "train",
        "Train one run, or with -m every combination of the values given. `train` may be left out.\n"
        "Run again, a command resumes what is unfinished and trains nothing twice; force=true starts over.",
        "  rlexp algo=lcpo env=restaurant seed=3\n"
        "  rlexp algo=ppo env=gym env.id=CartPole-v1 total_timesteps=50000\n"
        "  rlexp -m algo=ppo,lcpo seed=0-4 hydra/launcher=joblib\n"
        "  rlexp algo=lcpo --cfg job\n"
        "A gymnasium environment of your own: env=gym env.id=module:Name-v0 imports the module, also from this folder.",
    )
    parsed.add_argument(
        "overrides", nargs="*", metavar="key=value", help="group=option or any key of the config"
    )
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
    """Run Hydra's command line with our checks in front of it."""
    args = parser().parse(argv)
    _check_flags(args)
    overrides = [multirun.shell_safe(word) for word in args.overrides]
    with composing.hydra_app([args.config_dir] if args.config_dir else []) as hydra:
        if args.hydra_help:
            args.overrides = []  # Hydra composes them without our config, which cannot succeed
            hydra.hydra_help(composing.CONFIG_NAME, parser(), args)
            return 0
        if args.shell_completion:
            return complete.answer(hydra, composing.CONFIG_NAME, overrides)
        if args.cfg or args.info:
            return _show(hydra, args, overrides)
        jobs = multirun.expand(hydra, overrides) if args.multirun else [overrides]
        validated = preflight.validate_all(hydra, jobs)
        if not args.multirun:
            if validated[0].finished is not None:
                print(validated[0].finished)
                return 0
            return _run_one(hydra, overrides, validated[0].folder)
        return _run_many(hydra, jobs)


def _check_flags(args: argparse.Namespace) -> None:
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
        raise UsageError("--run, --multirun: give one of them")
    if args.cfg is None:
        for flag in ("resolve", "package"):
            if getattr(args, flag):
                raise UsageError(f"--{flag}: says how a config is printed; add --cfg job")


def _show(hydra: Any, args: argparse.Namespace, overrides: list[str]) -> int:
    check_choices(hydra, overrides)
    try:
        cfg = composing.compose_with(hydra, overrides)
    except Exception as error:
        raise explain(error, hydra, overrides) from error
    if args.package not in (None, "_global_") and OmegaConf.select(cfg, args.package) is None:
        raise UsageError(
            f"--package: there is no '{args.package}' in the config{did_you_mean(args.package, cfg)}"
        )
    if args.cfg:
        if args.resolve:
            composing.checked(cfg)
        hydra.show_cfg(composing.CONFIG_NAME, overrides, args.cfg, args.package, args.resolve)
    else:
        hydra.show_info(args.info, composing.CONFIG_NAME, overrides)
    return 0


# -------------------------------------------------------------------------------------------------------------- runs


def task(cfg: DictConfig) -> float | None:
    """One job of a multirun: what Hydra's launchers call, in whatever process.

    :return: final success rate, or mean return where the task has no success; None when the run failed, which is
        recorded and shown already, so that the jobs after it still run
    """
    from hydra.core.hydra_config import HydraConfig

    if workers.is_worker() and stopping.requested() is not None:
        return None
    folder = paths.run_dir(cfg)
    writer = record.JsonlWriter(Path(HydraConfig.get().sweep.dir) / multirun.RUNS)
    writer.append({"run": str(folder)})
    writer.close()
    try:
        return run(cfg, folder, _origin(), alone=False)
    except UsageError as error:
        print(f"rlexp: {error}", file=sys.stderr)
    except RunFailed:
        pass
    except stopping.Stopped:
        if not workers.is_worker():
            raise
    return None


def _origin() -> dict[str, Any]:
    from hydra.core.hydra_config import HydraConfig

    hydra_cfg = HydraConfig.get()
    groups = {
        str(key): value
        for key, value in hydra_cfg.runtime.choices.items()
        if not str(key).startswith("hydra/")
    }
    return {"overrides": list(hydra_cfg.overrides.task), "choices": groups}


def _run_one(hydra: Any, overrides: list[str], folder: Path) -> int:
    errors: list[UsageError | RunFailed] = []
    made = [path for path in (folder, *folder.parents) if not path.exists()]

    def single(cfg: DictConfig) -> float | None:
        try:
            return run(cfg, paths.run_dir(cfg), _origin())
        except (UsageError, RunFailed) as error:  # Hydra would wrap a traceback of its own around them
            errors.append(error)
            return None

    hydra.run(composing.CONFIG_NAME, single, [*overrides, "hydra.mode=RUN"], with_log_configuration=False)
    for error in errors:
        if isinstance(error, UsageError):
            _remove_empty(made)
            raise error
        return 1
    return 0


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # not empty, or gone
            folder.rmdir()


def _run_many(hydra: Any, jobs: list[list[str]]) -> int:
    sweep_dir = multirun.launch(hydra, jobs, task)
    folders = [Path(row["run"]) for row in record.read_jsonl(sweep_dir / multirun.RUNS)]
    failed = [folder for folder in folders if not _is_finished(folder)]
    print(
        f"{len(folders) - len(failed)} of {len(jobs)} runs finished; "
        f"compare them: rlexp report sweep {short(sweep_dir)}"
    )
    for folder in failed:
        print(f"not finished: {short(folder)}", file=sys.stderr)
    if failed:
        print("the same command again trains only what is missing", file=sys.stderr)
    return 1 if failed else 0


def _is_finished(folder: Path) -> bool:
    return (folder / record.RECORD).exists() and record.read_record(folder)["status"] == "finished"


def run(cfg: DictConfig, folder: Path, origin: dict[str, Any], alone: bool = True) -> float | None:
    """Train, resume or skip one run in its folder.

    :param alone: show the learning curve at the end
    :raises RunFailed: when training failed
    :raises Stopped: after SIGINT or SIGTERM
    """
    console = terminal.console(width=None, soft_wrap=True)
    if not cfg.force and (line := finished_line(folder) if folder.exists() else None):
        console.print(line)
        return _value(record.read_record(folder).get("evaluation") or {})
    import rlexp.experiment  # takes seconds: a signal that comes meanwhile leaves no folder behind  # noqa: F401

    folder.mkdir(parents=True, exist_ok=True)
    is_new = not any(folder.iterdir())
    aside = None
    with record.claimed(folder):
        if not (cfg.force and (folder / record.CONFIG).exists()):
            return _train(cfg, folder, origin, console, alone, is_new)
        aside = record.set_aside(folder)
    folder.mkdir(parents=True)
    with record.claimed(folder):
        try:
            return _train(cfg, folder, origin, console, alone, is_new=True)
        except UsageError:
            if not folder.exists():
                aside.rename(folder)
            raise


def _train(
    cfg: DictConfig, folder: Path, origin: dict[str, Any], console: Any, alone: bool, is_new: bool
) -> float | None:
    from rlexp.experiment import Experiment

    console.print(f"{cfg.algo.name} on {paths.env_label(cfg)}, seed {cfg.seed} -> {short(folder)}")
    experiment = Experiment(cfg, folder, origin, console)
    try:
        final = experiment.run()
    except stopping.Stopped:
        console.print(f"interrupted; run the same command again to resume {short(folder)}")
        raise
    except Exception as error:
        if is_new and not experiment.has_begun:  # nothing was trained: leave nothing behind
            shutil.rmtree(folder)
        if isinstance(error, UsageError):
            raise
        if is_new and not experiment.has_begun:
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise UsageError(f"{cfg.algo.name} on {paths.env_label(cfg)}: {reason}") from error
        if os.environ.get("RLEXP_TRACEBACK") == "1":
            traceback.print_exc()
        print(f"failed: {told(error)}", file=sys.stderr)
        if experiment.has_traceback:
            print(f"{short(folder / record.RECORD)} holds the traceback", file=sys.stderr)
        raise RunFailed(f"{short(folder)}: {error}") from error
    record.drop_previous(folder)
    console.print(f"finished: {summary(final)}")
    if alone:
        from rlexp.reports import run as run_report

        run_report.show(folder, console)
        console.print(f"run folder    {short(folder)}")
        console.print(
            f"look closer   rlexp evaluate {short(folder)}\n              rlexp report run {short(folder)}"
        )
    return _value(final)


def _value(final: dict[str, Any]) -> float | None:
    value = final.get("success_rate", final.get("return_mean"))
    return None if value is None else float(value)
