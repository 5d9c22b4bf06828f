"""From the ``env`` config to the arguments of a task: what it is trained on, and what it is measured on."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

EVALUATION = "evaluation_"


def task_options(cfg: DictConfig, evaluation: bool = False) -> dict[str, Any]:
    """Return the arguments of the task's function.

    A key ``evaluation_<key>`` of the config stands in for ``<key>`` where the task is built to measure a policy, unless
    it is null; training never sees it.

    :param evaluation: whether it is built to measure
    """
    options = OmegaConf.to_container(cfg.env, resolve=True)
    assert isinstance(options, dict)
    words = {str(key): value for key, value in options.items() if key != "name"}
    own = {key: words.pop(key) for key in list(words) if key.startswith(EVALUATION)}
    if evaluation:
        words |= {key.removeprefix(EVALUATION): value for key, value in own.items() if value is not None}
    return words
