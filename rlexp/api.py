"""Runs from Python, as in a notebook: train one as a command does, and read one back with its environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
from omegaconf import DictConfig

from rlexp.cli.train import train_one
from rlexp.config.hydra_app import hydra_app
from rlexp.errors import UsageError
from rlexp.runs import folder as run_folder
from rlexp.runs.loading import as_configured, load_config, load_trained
from rlexp.runs.preflight import check_env


@dataclass(frozen=True)
class LoadedRun:
    """A run that was read back; ``model, env = load_run(folder)`` works as well.

    :param model: the trained algorithm, with Stable-Baselines3's ``predict``
    :param env: one environment, built as those on which the run was evaluated; its observations are normalised where
        the run's were, by the statistics with which it ended; its rewards are the environment's own
    :param config: complete config of the run
    :param record: what ``record.json`` says: status, final evaluation, versions, ...
    :param folder: run folder
    """

    model: Any
    env: gymnasium.Env[Any, Any]
    config: DictConfig
    record: dict[str, Any]
    folder: Path

    def __iter__(self) -> Iterator[Any]:
        return iter((self.model, self.env))


def load_run(folder: str | Path) -> LoadedRun:
    """Read a finished run back: its trained model and an environment like those on which it was evaluated.

    Nothing is unpickled, and no module that lies in the run folder is imported.

    :param folder: run folder, as the command line prints it
    :raises UsageError: when there is no finished run, or its files are damaged or of different runs
    """
    from rlexp.runs.factories import make_env
    from rlexp.runs.normalization import normalized_like

    folder = Path(folder)
    record = run_folder.read_record(folder)
    cfg = load_config(folder)
    with as_configured(folder):
        check_env(cfg)
        model = load_trained(cfg, folder)
        env = normalized_like(model, make_env(cfg, evaluation=True))
    return LoadedRun(model, env, cfg, record, folder)


def train(*overrides: str, **settings: Any) -> LoadedRun:
    """Train, resume or skip one run as ``rlexp`` does with the same overrides, and read it back.

    ``train("algo=lcpo", "env=restaurant", seed=3)`` prints what the command prints and returns what
    :func:`load_run` does.

    :param overrides: as on the command line
    :param settings: values of general keys; ``**{"algo.gamma": 0.9}`` sets one with a dot in it
    :raises UsageError: when the run cannot be trained; nothing is on disk then
    :raises RunFailed: when training failed; the run folder says why
    """
    for text in overrides:
        if "=" not in text and not text.startswith("~"):
            raise UsageError(f"'{text}' given; write key=value, e.g. rlexp.train('algo=lcpo', seed=3)")
    typed = [*overrides, *(f"{key}={_text(value)}" for key, value in settings.items())]
    with hydra_app() as app:
        folder = train_one(app, typed)
    return load_run(folder)


def _text(value: Any) -> str:
    """Return a value in the grammar of overrides."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, str | Path) and not str(value).replace("_", "").replace("-", "").isalnum():
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value)
