"""``rlexp algo=... env=...``: train one run, or with ``-m`` many."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlexp import record, registry
from rlexp.commands import compose as composing
from rlexp.commands import multirun
from rlexp.commands.diagnose import explain
from rlexp.config import paths
from rlexp.config.task import EVALUATION, task_options
from rlexp.errors import RunFailed, UsageError


def main(argv: list[str]) -> int:
    """Run Hydra's command line with our checks in front of it."""
    from hydra._internal.utils import get_args_parser

    args = get_args_parser().parse_args(argv)
    overrides = [multirun.shell_safe(word) for word in args.overrides]
    with composing.hydra_app([args.config_dir] if args.config_dir else []) as hydra:
        if args.hydra_help:
            hydra.hydra_help(composing.CONFIG_NAME, get_args_parser(), args)
            return 0
        if args.shell_completion:
            hydra.shell_completion(composing.CONFIG_NAME, overrides)
            return 0
        if args.cfg or args.info:
            return _show(hydra, args, overrides)
        jobs = multirun.expand(hydra, overrides) if args.multirun else [overrides]
        finished = [_preflight(hydra, job) for job in jobs]
        if not args.multirun:
            if finished[0] is not None:
                print(finished[0])
                return 0
            return _run_one(hydra, overrides)
        return _run_many(hydra, jobs)


def _show(hydra: Any, args: Any, overrides: list[str]) -> int:
    try:
        if args.cfg:
            hydra.show_cfg(composing.CONFIG_NAME, overrides, args.cfg, args.package, args.resolve)
        else:
            hydra.show_info(args.info, composing.CONFIG_NAME, overrides)
    except Exception as error:
        raise explain(error, hydra, overrides) from error
    return 0


# ------------------------------------------------------------------------------------------------------ before a run


def _preflight(hydra: Any, overrides: list[str]) -> str | None:
    """Refuse what cannot be run, before anything is on disk.

    :return: a line that says so when the run is finished already, else None
    """
    try:
        cfg = composing.compose_with(hydra, overrides)
    except Exception as error:
        raise explain(error, hydra, overrides) from error
    cfg = composing.checked(cfg)
    folder = paths.run_dir(cfg)
    _check_writable(folder)
    if folder.exists() and not cfg.force:
        line = _finished_line(folder)
        if line is not None:
            return line
        check_resumable(folder, cfg)
    check_task(cfg)
    _check_device(cfg)
    return None


def _finished_line(folder: Path) -> str | None:
    if not (folder / record.RECORD).exists():
        return None
    entry = record.read_record(folder)
    if entry["status"] != "finished":
        return None
    return f"already finished: {summary(entry.get('evaluation') or {})}\n{folder}\nforce=true trains it anew"


def summary(row: dict[str, Any]) -> str:
    """Return the final numbers in words."""
    if not row:
        return "no evaluation was asked for"
    if "success_rate" not in row:
        return f"return {row['return_mean']:.2f} ± {row['return_std']:.2f} over {row['n']} episodes"
    turns = f", {row['system_turns_mean']:.1f} turns" if "system_turns_mean" in row else ""
    return f"success rate {row['success_rate']:.1%}{turns}, return {row['return_mean']:.2f} over {row['n']} episodes"


def check_resumable(folder: Path, cfg: DictConfig) -> None:
    """Refuse an unfinished run folder that is not what its name says.

    :raises UsageError: naming the damage
    """
    if not any(folder.iterdir()):
        return
    stored = folder / record.CONFIG
    if not stored.is_file():
        if any(path.name != ".lock" for path in folder.iterdir()):
            raise UsageError(f"{folder}: damaged run, {record.CONFIG} is missing; force=true trains anew")
        return
    try:
        found = OmegaConf.load(stored)
        same = isinstance(found, DictConfig) and paths.learning(found) == paths.learning(cfg)
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise UsageError(
            f"{folder}: damaged run, {record.CONFIG} cannot be read ({first}); force=true trains anew"
        ) from error
    if not same:
        raise UsageError(f"{folder}: damaged run, {record.CONFIG} is of another run; force=true trains anew")
    if (folder / record.RECORD).exists():
        record.read_record(folder)


def _check_writable(folder: Path) -> None:
    parent = folder
    while not parent.exists() and not parent.is_symlink():
        parent = parent.parent
    problem = None
    if not parent.is_dir():
        problem = "is not a folder"
    else:
        try:  # the only test that holds for every file system and user
            Path(tempfile.mkdtemp(prefix=".rlexp-", dir=parent)).rmdir()
        except OSError as error:
            problem = error.strerror or str(error)
    if problem:
        raise UsageError(f"output_dir: cannot write the run folder below {parent}: {problem}")


def check_task(cfg: DictConfig) -> None:
    """Build the task once: its arguments may be wrong, and only the built task may tell which algorithms fit.

    :raises UsageError: when it cannot be built or does not fit
    """
    from gymnasium import spaces

    spec = registry.env(cfg.env.name)
    env = _build_task(cfg, spec)
    if any(str(key).startswith(EVALUATION) for key in cfg.env):
        _build_task(cfg, spec, evaluation=True).close()
    action_space, observation_space = env.action_space, env.observation_space
    controllers = tuple(getattr(env.unwrapped, "controllers", ()))
    env.close()
    actions = {spaces.Discrete: "discrete", spaces.Box: "continuous"}.get(
        type(action_space), type(action_space).__name__
    )
    if isinstance(observation_space, spaces.Dict):
        observations = "dict"
    elif isinstance(
        observation_space, (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
    ):
        image = len(observation_space.shape or ()) == 3
        observations = "image" if image else "vector"
    else:
        observations = type(observation_space).__name__
    algo = registry.algo(cfg.algo.name)
    refusal = registry.misfit(algo, spec, actions, observations, bool(cfg.env.get("masks", False)))
    if refusal:
        raise UsageError(refusal)
    if algo.controller is not None and algo.controller not in controllers:  # one choice may cover many tasks
        raise UsageError(
            f"algo={algo.name} does not fit env={paths.env_label(cfg)}: it has no controller of its own"
        )
    _check_demonstrations(cfg, observation_space, action_space)
    target = algo.target if not cfg.env.get("masks", False) else algo.masked_target or algo.target
    refuse = getattr(
        registry.load(target), "refuse", None
    )  # an algorithm may know more than its kinds of spaces
    if refuse is not None:
        words = OmegaConf.to_container(cfg.algo, resolve=True)
        try:
            refuse(observation_space, action_space, cfg.hardware.n_envs, words)
        except UsageError as error:
            key = str(error).split(":")[0]
            raise UsageError(f"algo.{error}" if key in cfg.algo else str(error)) from None


def _check_demonstrations(cfg: DictConfig, observation_space: Any, action_space: Any) -> None:
    """Refuse demonstrations that cannot be read or are of another task.

    :raises UsageError: naming the file
    """
    path = cfg.algo.get("demonstrations")
    if path is None:
        return
    from rlexp.buffers import demonstrations

    found = demonstrations.read(path)
    task = found.provenance.get("task", paths.env_label(cfg))
    if task != paths.env_label(cfg):
        raise UsageError(
            f"algo.demonstrations: {path} was recorded on {task}, the run is on {paths.env_label(cfg)}"
        )
    found.require(observation_space, action_space, f"algo.demonstrations: {path}")


def _build_task(cfg: DictConfig, spec: registry.EnvSpec, evaluation: bool = False) -> Any:
    words = task_options(cfg, evaluation)
    try:
        return registry.load(spec.target)(**words)
    except (ValueError, TypeError, OSError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        key = first.split(":")[0]
        if evaluation and f"{EVALUATION}{key}" in cfg.env:
            raise UsageError(f"env.{EVALUATION}{first}") from error
        if key in words:
            raise UsageError(f"env.{first}") from error
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"env={cfg.env.name}: {first}") from error


def _check_device(cfg: DictConfig) -> None:
    if cfg.hardware.device == "cuda":
        import torch as th

        if not th.cuda.is_available():
            raise UsageError(
                "hardware.device: cuda given, no CUDA device is available; hardware=auto takes what there is"
            )
    if cfg.hardware.ray is not None:
        from rlexp.distributed.on_ray import require

        require(cfg.hardware.ray.address)
    if cfg.logger.tensorboard:
        from importlib.util import find_spec

        if find_spec("tensorboard") is None:
            raise UsageError(
                "logger.tensorboard: true given, tensorboard is not installed (pip install tensorboard)"
            )


# -------------------------------------------------------------------------------------------------------------- runs


def task(cfg: DictConfig) -> float | None:
    """One job of a multirun: what Hydra's launchers call, in whatever process.

    :return: final success rate, or mean return where the task has no success; None when the run failed, which is
        recorded and shown already, so that the jobs after it still run
    """
    from hydra.core.hydra_config import HydraConfig

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


def _run_one(hydra: Any, overrides: list[str]) -> int:
    errors: list[UsageError | RunFailed] = []

    def single(cfg: DictConfig) -> float | None:
        try:
            return run(cfg, paths.run_dir(cfg), _origin())
        except (UsageError, RunFailed) as error:  # Hydra would wrap a traceback of its own around them
            errors.append(error)
            return None

    hydra.run(composing.CONFIG_NAME, single, [*overrides, "hydra.mode=RUN"], with_log_configuration=False)
    for error in errors:
        if isinstance(error, UsageError):
            raise error
        return 1
    return 0


def _run_many(hydra: Any, jobs: list[list[str]]) -> int:
    sweep_dir = multirun.launch(hydra, jobs, task)
    folders = [Path(row["run"]) for row in record.read_jsonl(sweep_dir / multirun.RUNS)]
    failed = [folder for folder in folders if record.read_record(folder)["status"] != "finished"]
    print(
        f"{len(folders) - len(failed)} of {len(jobs)} runs finished; "
        f"compare them: rlexp report sweep {_short(sweep_dir)}"
    )
    for folder in failed:
        print(f"not finished: {_short(folder)}", file=sys.stderr)
    if failed:
        print("the same command again trains only what is missing", file=sys.stderr)
    return 1 if failed else 0


def run(cfg: DictConfig, folder: Path, origin: dict[str, Any], alone: bool = True) -> float | None:
    """Train, resume or skip one run in its folder.

    :param alone: show the learning curve at the end
    :raises RunFailed: when training failed
    :raises SystemExit: 130 or 143 when it was interrupted
    """
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    if not cfg.force and (line := _finished_line(folder) if folder.exists() else None):
        console.print(line)
        return _value(record.read_record(folder).get("evaluation") or {})
    folder.mkdir(parents=True, exist_ok=True)
    with record.claimed(folder):
        if not (cfg.force and (folder / record.CONFIG).exists()):
            return _train(cfg, folder, origin, console, alone)
        record.set_aside(folder)
    folder.mkdir(parents=True)
    with record.claimed(folder):
        return _train(cfg, folder, origin, console, alone)


def _train(cfg: DictConfig, folder: Path, origin: dict[str, Any], console: Any, alone: bool) -> float | None:
    from rlexp.callbacks.keep import Interrupted
    from rlexp.experiment import Experiment

    console.print(f"{cfg.algo.name} on {paths.env_label(cfg)}, seed {cfg.seed} -> {_short(folder)}")
    try:
        final = Experiment(cfg, folder, origin, console).run()
    except Interrupted as stop:
        console.print(f"interrupted, state kept; the same command goes on from here\n{_short(folder)}")
        raise SystemExit(stop.exit_code) from None
    except KeyboardInterrupt:
        console.print(f"stopped at once; the same command goes on from the last checkpoint\n{_short(folder)}")
        raise SystemExit(130) from None
    except UsageError:
        raise
    except Exception as error:
        if os.environ.get("RLEXP_TRACEBACK") == "1":
            traceback.print_exc()
        print(
            f"failed: {type(error).__name__}: {error}\n{_short(folder / record.RECORD)} holds the traceback",
            file=sys.stderr,
        )
        raise RunFailed(f"{_short(folder)}: {error}") from error
    record.drop_previous(folder)
    console.print(f"finished: {summary(final)}")
    if alone:
        from rlexp.reports import run as run_report

        run_report.show(folder, console)
        console.print(f"run folder    {_short(folder)}")
        console.print(
            f"look closer   rlexp evaluate {_short(folder)}\n              rlexp report run {_short(folder)}"
        )
    return _value(final)


def _short(folder: Path) -> str:
    here = Path.cwd()
    return str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)


def _value(final: dict[str, Any]) -> float | None:
    value = final.get("success_rate", final.get("return_mean"))
    return None if value is None else float(value)
