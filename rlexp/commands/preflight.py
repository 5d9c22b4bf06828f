"""Everything that is validated before a run: when the run folder appears, what was typed can be trained."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlexp import record, registry
from rlexp.commands import compose as composing
from rlexp.commands import hydra_settings
from rlexp.commands.build_check import check_build
from rlexp.commands.diagnose import check_choices, explain, first_line
from rlexp.commands.messages import finished_line
from rlexp.config import paths
from rlexp.config.task import EVALUATION, task_options
from rlexp.errors import UsageError, told
from rlexp.folder import validate as validate_folder
from rlexp.stored import read_config

if TYPE_CHECKING:
    from hydra._internal.hydra import Hydra


@dataclass(frozen=True)
class Validated:
    """A run that can be trained.

    :param folder: where
    :param finished: a line that says so when it is finished already
    """

    folder: Path
    finished: str | None = None


def validate_all(hydra: Hydra, jobs: Sequence[Sequence[str]]) -> list[Validated]:
    """Validate every run before the first begins and before anything is on disk.

    What the seeds of a setting share is built once.

    :param jobs: the overrides of each
    :raises UsageError: for the first that cannot be run
    """
    built: set[str] = set()
    return [_validate(hydra, job, built) for job in jobs]


def _validate(hydra: Hydra, overrides: Sequence[str], built: set[str]) -> Validated:
    hydra_settings.check_overrides(overrides)
    try:
        cfg = composing.compose_with(hydra, overrides)
    except Exception as error:
        raise explain(error, hydra, overrides) from error
    check_choices(hydra, overrides)
    hydra_settings.check(cfg.hydra)
    cfg = composing.checked(cfg)
    folder = paths.run_dir(cfg)
    check_writable(folder)
    if folder.exists() and not cfg.force:
        line = finished_line(folder)
        if line is not None:
            return Validated(folder, line)
        check_resumable(folder, cfg)
    variant = f"{paths.env_label(cfg)} {paths.variant(cfg)}"
    if variant not in built:
        check_task(cfg)
        _check_device(cfg)
        check_build(hydra, overrides, cfg)
        built.add(variant)
    return Validated(folder)


def check_resumable(folder: Path, cfg: DictConfig) -> None:
    """Refuse an unfinished run folder that is not what its name says.

    :raises UsageError: naming the damage
    """
    validate_folder(folder)
    if not any(folder.iterdir()):
        return
    path = folder / record.CONFIG
    if not path.is_file():
        if any(path.name != ".lock" for path in folder.iterdir()):
            raise UsageError(f"{folder}: damaged run, {record.CONFIG} is missing; force=true trains anew")
        return
    try:
        found = read_config(path)
        same = paths.learning(found) == paths.learning(cfg)
    except UsageError as error:
        raise UsageError(f"{error}; force=true trains anew") from error
    except (KeyError, TypeError, OmegaConfBaseException):
        same = False
    if not same:
        raise UsageError(f"{folder}: damaged run, {record.CONFIG} is of another run; force=true trains anew")
    if (folder / record.RECORD).exists():
        record.read_record(folder)


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
            f"{key}: cannot write {_shortened(folder)}: {_shortened(parent)}: {reason}"
        ) from error


def _shortened(path: Path) -> str:
    text = str(path).replace("\0", "\\0")
    return text if len(text) <= 200 else f"{text[:100]}...{text[-100:]}"


def check_task(cfg: DictConfig) -> None:
    """Build the task once: its arguments may be wrong, and only the built task may tell which algorithms fit.

    :raises UsageError: when it cannot be built or does not fit
    """
    from gymnasium import spaces

    _check_files(cfg)
    spec = registry.env(cfg.env.name)
    env = _build_task(cfg, spec)
    if any(str(key).startswith(EVALUATION) for key in cfg.env):
        _close_task(cfg, _build_task(cfg, spec, evaluation=True))
    action_space, observation_space = env.action_space, env.observation_space
    controllers = tuple(getattr(env.unwrapped, "controllers", ()))
    _close_task(cfg, env)
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


def _check_files(cfg: DictConfig) -> None:
    """Refuse what looks like a file and is none: reading a device or a pipe may never end.

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
    except Exception as error:  # an environment of somebody's own may raise anything
        first = first_line(error)
        key = re.split("[:=]", first)[0]
        if evaluation and f"{EVALUATION}{key}" in cfg.env:
            raise UsageError(f"env.{EVALUATION}{first}") from error
        if key in words:
            raise UsageError(f"env.{first}") from error
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"env={cfg.env.name}: {first}") from error


def _close_task(cfg: DictConfig, env: Any) -> None:
    try:
        env.close()
    except Exception as error:
        raise UsageError(f"env={cfg.env.name}: cannot be closed: {told(error)}") from error


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
