"""A finished run, read back: its config and its trained model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlexp.errors import UsageError
from rlexp.runs import folder as run_folder
from rlexp.runs.stored import read_config
from rlexp.system.imports import exclude


def load_config(folder: Path) -> DictConfig:
    """Return the config of a run, possibly untrusted: from now on no module in its folder is imported.

    :raises UsageError: when it cannot be read, is not the one that the run was made with, or names a module that is no
        environment's
    """
    from rlexp.config.schema import Config

    path = folder / run_folder.CONFIG
    stored = read_config(path)
    expected = run_folder.read_record(folder).get("config_sha256")  # older records have none
    if expected is not None and run_folder.sha256(path) != expected:
        raise UsageError(
            f"{folder}: {path.name} is not the one that this run was made with; restore it, and give other settings "
            "as overrides"
        )
    try:
        cfg = OmegaConf.merge(OmegaConf.structured(Config), stored)
    except (OmegaConfBaseException, ValueError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise UsageError(f"{folder}: damaged run, {run_folder.CONFIG} cannot be read ({first})") from error
    assert isinstance(cfg, DictConfig)
    exclude(folder, str(OmegaConf.select(cfg, "env.id")))
    return cfg


@contextmanager
def as_configured(folder: Path) -> Iterator[None]:
    """Say in one line what a config that cannot be built makes fail; any layer below may be the one to notice.

    :raises UsageError: instead of whatever else was raised
    """
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise UsageError(
            f"{folder}: cannot be used as its {run_folder.CONFIG} says ({type(error).__name__}: {first})"
        ) from error


def load_trained(cfg: DictConfig, folder: Path) -> Any:
    """Return a run's algorithm with the weights with which it ended; its training environments are closed.

    :raises UsageError: when it has not ended
    """
    import torch as th

    from rlexp import registry
    from rlexp.runs import normalization
    from rlexp.runs.evaluation import load_policy
    from rlexp.runs.factories import make_model, make_training_env

    th.set_num_threads(cfg.hardware.torch_threads or 1)
    archive = folder / "model.zip"
    trains = registry.algo(cfg.algo.name).trains
    if trains and not archive.is_file():
        raise UsageError(f"{folder}: no trained policy yet (model.zip is missing); train it to the end first")
    env = make_training_env(cfg)
    model = make_model(cfg, env)
    if trains:
        load_policy(model, archive, cfg.hardware.device)
        if (normalizer := model.get_vec_normalize_env()) is not None:
            normalization.load(normalizer, folder)
    env.close()
    return model
