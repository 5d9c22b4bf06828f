"""From the ``env`` config to the arguments of an environment, for training and for evaluation."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

EVALUATION = "evaluation_"


def env_arguments(cfg: DictConfig, evaluation: bool = False) -> dict[str, Any]:
    """Return the arguments with which the environment is built.

    A key ``evaluation_<key>`` of the config replaces ``<key>`` in evaluations unless it is null; training never
    sees it.

    :param evaluation: whether the environment is built for evaluations
    """
    options = OmegaConf.to_container(cfg.env, resolve=True)
    assert isinstance(options, dict)
    arguments = {str(key): value for key, value in options.items() if key != "name"}
    own = {key: arguments.pop(key) for key in list(arguments) if key.startswith(EVALUATION)}
    if evaluation:
        arguments |= {key.removeprefix(EVALUATION): value for key, value in own.items() if value is not None}
    return arguments
