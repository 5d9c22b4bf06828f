"""The same words always lead to the same folder."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

# Keys that change where or how loudly a run works, but not what it learns.
BOOKKEEPING = ("seed", "output_dir", "name", "tags", "force", "logger", "checkpoint")
# Of the hardware only the number of task copies changes what is learned.
LEARNING_HARDWARE = ("n_envs",)
# With actors of their own, how learning is spread over them does, too; where they are does not.
RAY_BOOKKEEPING = ("address", "object_store_mb")


def conf_dir() -> Path:
    """Return the folder of the YAML files: inside an installed wheel, else at the top of the checkout."""
    return _shipped("conf")


def sweeps_dir() -> Path:
    """Return the folder of the sweep files: inside an installed wheel, else at the top of the checkout."""
    return _shipped("sweeps")


def _shipped(name: str) -> Path:
    package = Path(__file__).resolve().parent.parent
    inside = package / name
    return inside if inside.is_dir() else package.parent / name


def resolved(cfg: DictConfig) -> dict[str, Any]:
    """Return the complete config as plain containers, without Hydra's own node.

    :raises omegaconf.errors.MissingMandatoryValue: when a mandatory value is missing
    """
    plain = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    container = OmegaConf.to_container(plain, resolve=True, throw_on_missing=True)
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def learning(cfg: DictConfig) -> dict[str, Any]:
    """Return what of one run's config decides what is learned, with what follows from its seed filled in."""
    part = {key: value for key, value in resolved(cfg).items() if key not in BOOKKEEPING}
    hardware = part["hardware"]
    part["hardware"] = {key: hardware[key] for key in LEARNING_HARDWARE}
    ray = hardware.get("ray")  # runs from before there was such a key have none
    if ray is not None:
        part["hardware"]["ray"] = {key: value for key, value in ray.items() if key not in RAY_BOOKKEEPING}
    return part


def variant(cfg: DictConfig) -> str:
    """Return eight hexadecimal digits that stand for everything that decides what is learned, but the seed."""
    unseeded = OmegaConf.masked_copy(cfg, [str(key) for key in cfg if key != "hydra"])
    unseeded.seed = 0  # keys that follow ${seed} must not tell the variants of two seeds apart
    text = json.dumps(learning(unseeded), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def env_label(cfg: DictConfig) -> str:
    """Return the folder name of a task: its config choice, with the id where one choice covers many tasks."""
    identity = OmegaConf.select(cfg, "env.id") or OmegaConf.select(cfg, "env.game")
    label = str(cfg.env.name) if identity is None else f"{cfg.env.name}-{identity}"
    return re.sub(r"[^A-Za-z0-9._-]+", "_", label)


def run_dir(cfg: DictConfig) -> Path:
    """Return the absolute folder of a run: ``<output_dir>/runs/<env>/<algo>/<variant>/seed=<n>``."""
    top = Path(str(cfg.output_dir)).expanduser().absolute()
    return top / "runs" / env_label(cfg) / str(cfg.algo.name) / variant(cfg) / f"seed={cfg.seed}"
