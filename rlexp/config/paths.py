"""The same settings always lead to the same folder."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlexp.config.intervals import KEYS, is_default
from rlexp.config.renamed import with_old_names, without_additions

# Keys that change where or how loudly a run works or how its policy is measured, but not what it learns.
BOOKKEEPING = ("seed", "output_dir", "name", "tags", "force", "logger", "checkpoint", "evaluation")
# Of the hardware only the number of environments changes what is learned.
LEARNING_HARDWARE = ("n_envs",)
# With distributed actors the way in which learning is distributed decides it, too; where they run does not.
RAY_BOOKKEEPING = ("address", "object_store_mb")


def resolved(cfg: DictConfig) -> dict[str, Any]:
    """Return the complete config as plain containers, without Hydra's own node.

    :raises omegaconf.errors.MissingMandatoryValue: when a mandatory value is missing
    """
    found: dict[str, Any] = {}
    for key in cfg:
        if key != "hydra":
            value = cfg[key]
            is_node = OmegaConf.is_config(value)
            found[str(key)] = (
                OmegaConf.to_container(value, resolve=True, throw_on_missing=True) if is_node else value
            )
    return found


def learning(cfg: DictConfig) -> dict[str, Any]:
    """Return what of a run's config decides what is learned, with what follows from its seed filled in."""
    part = {key: value for key, value in resolved(cfg).items() if key not in BOOKKEEPING}
    if part.get("init_from") is None:  # configs from before there was such a key have none
        part.pop("init_from", None)
    if not any((part.get("normalize") or {}).values()):
        part.pop("normalize", None)
    part = without_additions(part)
    hardware = part["hardware"]
    part["hardware"] = {key: hardware[key] for key in LEARNING_HARDWARE}
    ray = hardware.get("ray")  # runs from before there was such a key have none
    if ray is not None:
        part["hardware"]["ray"] = {key: value for key, value in ray.items() if key not in RAY_BOOKKEEPING}
    return part


def reported(cfg: DictConfig) -> dict[str, Any]:
    """Return what of a run's config decides its numbers in a report: what is learned, and how it is measured."""
    return {**learning(cfg), "evaluation": resolved(cfg)["evaluation"]}


def variant(cfg: DictConfig) -> str:
    """Return a hash, eight hexadecimal digits, of everything that decides what is learned except the seed."""
    return _digest(learning(_unseeded(cfg)))


def earlier_variant(cfg: DictConfig) -> str:
    """Return the variant of earlier versions: it depended on ``evaluation.*``, whose intervals were null unless set."""
    unseeded = _unseeded(cfg)
    for key in KEYS:
        if is_default(unseeded.evaluation, key):
            unseeded.evaluation[key] = None
    return _digest(reported(unseeded))


def _unseeded(cfg: DictConfig) -> DictConfig:
    """Return a copy in which keys that follow ``${seed}`` do not make the variants of two seeds differ."""
    unseeded = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    unseeded.seed = 0
    return unseeded


def _digest(part: dict[str, Any]) -> str:
    text = json.dumps(with_old_names(part), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def env_label(cfg: DictConfig) -> str:
    """Return the folder name of a task: its config choice, with the id where one choice covers many tasks."""
    identity = OmegaConf.select(cfg, "env.id") or OmegaConf.select(cfg, "env.game")
    label = str(cfg.env.name) if identity is None else f"{cfg.env.name}-{identity}"
    return slug(label)


def slug(name: str) -> str:
    """Return a name as part of a file name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name)


def run_dir(cfg: DictConfig) -> Path:
    """Return the absolute folder of a run: ``<output_dir>/runs/<env>/<algo>/<variant>/seed=<n>``.

    A run that lies where earlier versions put it is found there.
    """
    top = Path(str(cfg.output_dir)).expanduser().absolute() / "runs" / env_label(cfg) / str(cfg.algo.name)
    folder = top / variant(cfg) / f"seed={cfg.seed}"
    # os.path.isdir() accepts a path that is too long; creating the folder reports it.
    if os.path.isdir(folder) or not os.path.isdir(top):  # noqa: PTH112
        return folder
    earlier = top / earlier_variant(cfg) / folder.name
    return earlier if os.path.isdir(earlier) else folder  # noqa: PTH112
