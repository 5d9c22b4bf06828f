"""Validation before a run: a run folder appears only for a run that can be trained."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig
from omegaconf.errors import OmegaConfBaseException

from rlexp import registry
from rlexp.config import compose as composing
from rlexp.config import hydra_settings, paths
from rlexp.config.env_arguments import EVALUATION, env_arguments
from rlexp.config.hydra_app import HydraApp
from rlexp.errors import UsageError, describe, first_line
from rlexp.runs import folder as run_folder
from rlexp.runs.build_check import check_build
from rlexp.runs.messages import finished_line
from rlexp.runs.stored import read_config
from rlexp.system.extras import require
from rlexp.system.files import validate as validate_folder


@dataclass(frozen=True)
class Validated:
    """A run that can be trained.

    :param folder: where
    :param finished: a line that says so when it is finished already
    """

    folder: Path
    finished: str | None = None


def validate_all(app: HydraApp, jobs: Sequence[Sequence[str]]) -> list[Validated]:
    """Validate every run before the first begins and before anything is on disk.

    What the seeds of a setting share is built once.

    :param jobs: the overrides of each
    :raises UsageError: for the first that cannot be run
    """
    built: set[str] = set()
    return [_validate(app, job, built) for job in jobs]


def _validate(app: HydraApp, overrides: Sequence[str], built: set[str]) -> Validated:
    hydra_settings.check_overrides(overrides)
    cfg = composing.explained(app, overrides)
    hydra_settings.check(cfg.hydra)
    cfg = composing.checked(cfg)
    folder = paths.run_dir(cfg)
    check_writable(folder)
    if cfg.init_from is not None:
        _check_source(cfg)
    if folder.exists() and not cfg.force:
        line = finished_line(folder, cfg)
        if line is not None:
            return Validated(folder, line)
        check_resumable(folder, cfg)
    variant = f"{paths.env_label(cfg)} {paths.variant(cfg)}"
    if variant not in built:
        check_env(cfg)
        _check_device(cfg)
        check_build(app, overrides, cfg)
        built.add(variant)
    return Validated(folder)


def _check_source(cfg: DictConfig) -> None:
    """Reject a warm start from what is no trained run of the same algorithm.

    :raises UsageError: saying why
    """
    try:
        record = run_folder.read_record(Path(cfg.init_from))
    except UsageError as error:
        raise UsageError(f"init_from: {error}") from error
    if not registry.algo(cfg.algo.name).trains:
        raise UsageError(f"init_from: algo={cfg.algo.name} has no weights")
    if record.get("algo") != cfg.algo.name:
        raise UsageError(
            f"init_from: {cfg.init_from} is of {record.get('algo')}, the run is of {cfg.algo.name}"
        )
    if not (Path(cfg.init_from) / "model.zip").is_file():
        raise UsageError(f"init_from: {cfg.init_from}: no trained policy yet (model.zip is missing)")


def check_resumable(folder: Path, cfg: DictConfig) -> None:
    """Reject an unfinished run folder that is not what its name says.

    :raises UsageError: naming the damage
    """
    validate_folder(folder)
    if not any(folder.iterdir()):
        return
    path = folder / run_folder.CONFIG
    if not path.is_file():
        if any(path.name != ".lock" for path in folder.iterdir()):
            raise UsageError(
                f"{folder}: damaged run, {run_folder.CONFIG} is missing; force=true trains from scratch"
            )
        return
    try:
        found = read_config(path)
        same = paths.learning(found) == paths.learning(cfg)
    except UsageError as error:
        raise UsageError(f"{error}; force=true trains from scratch") from error
    except (KeyError, TypeError, OmegaConfBaseException):
        same = False
    if not same:
        raise UsageError(
            f"{folder}: damaged run, {run_folder.CONFIG} is of another run; force=true trains from scratch"
        )
    if (folder / run_folder.RECORD).exists():
        run_folder.read_record(folder)


def check_writable(folder: Path, key: str = "output_dir") -> None:
    """Try whether a folder can be made and written to.

    :param key: what names it in the message
    :raises UsageError: when it cannot
    """
    parent = folder
    try:  # the only test that holds for every file system and user
        if "\0" in str(folder):  # exists() is content with it
            raise ValueError("a path cannot hold a NUL character")
        while not parent.exists() and not parent.is_symlink():
            parent = parent.parent
        if not parent.is_dir():
            raise NotADirectoryError("is not a folder")
        Path(tempfile.mkdtemp(prefix=".rlexp-", dir=parent)).rmdir()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"{key}: cannot write {run_folder.shorten_path(folder)}: {run_folder.shorten_path(parent)}: {reason}"
        ) from error


def check_env(cfg: DictConfig) -> None:
    """Build the environment once: its arguments may be wrong, and its spaces decide which algorithms are compatible.

    :raises UsageError: when it cannot be built or is not compatible
    """
    from gymnasium import spaces

    _check_files(cfg)
    spec = registry.env(cfg.env.name)
    env = _build_env(cfg, spec)
    if any(str(key).startswith(EVALUATION) for key in cfg.env):
        _close_env(cfg, _build_env(cfg, spec, evaluation=True))
    action_space, observation_space = env.action_space, env.observation_space
    controllers = tuple(getattr(env.unwrapped, "controllers", ()))
    if cfg.logger.show_episode:
        from rlexp.runs.shown_episode import check_shown

        check_shown(env, paths.env_label(cfg))
    _close_env(cfg, env)
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
    problem = registry.incompatibility(algo, spec, actions, observations, bool(cfg.env.get("masks", False)))
    if problem:
        raise UsageError(problem)
    if (
        algo.controller is not None and algo.controller not in controllers
    ):  # one choice may cover many environments
        raise UsageError(
            f"algo={algo.name} is not compatible with env={paths.env_label(cfg)}: it has no such controller"
        )
    _check_demonstrations(cfg, observation_space, action_space)
    target = algo.target if not cfg.env.get("masks", False) else algo.masked_target or algo.target
    check_spaces = getattr(registry.load(target), "check_spaces", None)
    if check_spaces is not None:  # an algorithm may know more than its kinds of spaces
        check_spaces(observation_space, action_space)


def _check_files(cfg: DictConfig) -> None:
    """Reject devices and pipes: reading one may never end.

    :raises UsageError: naming the key
    """
    for group in ("env", "algo"):
        for key, value in cfg[group].items():
            for text in value if isinstance(value, ListConfig) else [value]:
                if isinstance(text, str) and _is_special(text):
                    raise UsageError(f"{group}.{key}: {text} is not a regular file")


def _is_special(text: str) -> bool:
    try:
        path = Path(text)
        return path.exists() and not (path.is_file() or path.is_dir())
    except (OSError, ValueError):  # no path at all
        return False


def _check_demonstrations(cfg: DictConfig, observation_space: Any, action_space: Any) -> None:
    """Reject demonstrations that cannot be read or are of another task.

    :raises UsageError: naming the file
    """
    path = cfg.algo.get("demonstrations")
    if path is None:
        return
    from rlexp.demonstrations import storage

    found = storage.read(path)
    own = paths.env_label(cfg)
    recorded = found.provenance.get("task")
    if recorded is None and cfg.env.get(
        "id"
    ):  # a Minari dataset that somebody else has made, or one of no command
        own, recorded = str(cfg.env.id).rpartition(":")[2], found.provenance.get("env_id")
    if recorded not in (None, own):
        raise UsageError(f"algo.demonstrations: {path} was recorded on {recorded}, the run is on {own}")
    found.require(observation_space, action_space, f"algo.demonstrations: {path}")


def _build_env(cfg: DictConfig, spec: registry.EnvSpec, evaluation: bool = False) -> Any:
    options = env_arguments(cfg, evaluation)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the run itself will show them
            return registry.load(spec.target)(**options)
    except Exception as error:  # a custom environment may raise anything
        first = first_line(error)
        key = re.split("[:=]", first)[0]
        if evaluation and f"{EVALUATION}{key}" in cfg.env:
            raise UsageError(f"env.{EVALUATION}{first}") from error
        if key in options:
            raise UsageError(f"env.{first}") from error
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"env={cfg.env.name}: {first}") from error


def _close_env(cfg: DictConfig, env: Any) -> None:
    try:
        env.close()
    except Exception as error:  # as above
        raise UsageError(f"env={cfg.env.name}: cannot be closed: {describe(error)}") from error


def _check_device(cfg: DictConfig) -> None:
    if cfg.hardware.device == "cuda":
        import torch as th

        if not th.cuda.is_available():
            raise UsageError(
                "hardware.device: cuda given, no CUDA device is available; hardware=auto takes what there is"
            )
    if cfg.hardware.ray is not None:
        if registry.env(cfg.env.name).tracker is not None:
            raise UsageError(
                f"hardware=ray: env={cfg.env.name} records what happens within its episodes, of which actors send only "
                "the ends; hardware=cpu or gpu trains it"
            )
        from rlexp.distributed import on_ray

        on_ray.require(cfg.hardware.ray.address)
    if cfg.logger.tensorboard:
        require("tensorboard", "tensorboard", "logger=tensorboard, logger.tensorboard=true")
