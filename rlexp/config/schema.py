"""Names, types and ranges of everything that a person can set. The values live in ``conf/*.yaml``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from omegaconf import MISSING

from rlexp import registry
from rlexp.config.fields import choice, number, required

# OmegaConf reads these annotations at run time and supports Optional[...] only, not the bar notation.
# ruff: noqa: UP045


@dataclass
class RayConfig:
    """Actors, replay shards and learner as processes on Ray; see :mod:`rlexp.distributed`."""

    address: Optional[str] = required()
    actors: int = number(at_least=1, at_most=10_000)
    replay_shards: int = number(at_least=1, at_most=10_000)
    prefetch: int = number(at_least=1)
    weights_every: int = number(at_least=1)
    update_ratio: str = choice("serial", "free")
    per_actor_epsilon: bool = required()
    send_every: int = number(at_least=1)
    object_store_mb: int = number(at_least=80)


@dataclass
class HardwareConfig:
    """Where a run computes."""

    device: str = choice("auto", "cpu", "cuda")
    torch_threads: Optional[int] = number(at_least=1, at_most=4096)
    n_envs: int = number(at_least=1, at_most=10_000)
    vec_env: str = choice("dummy", "subproc")
    ray: Optional[RayConfig] = None


@dataclass
class NormalizeConfig:
    """What an algorithm is given in units of its running statistics; see :mod:`rlexp.runs.normalization`."""

    observations: bool = False
    rewards: bool = False


@dataclass
class LoggerConfig:
    """Where metrics go beside the JSONL files, which are always written."""

    mode: str = choice("offline", "online", "disabled")
    project: str = required()
    entity: Optional[str] = required()
    tensorboard: bool = required()
    # Not in the configs of older runs.
    metadata: bool = False
    system_metrics: bool = False
    show_episode: bool = False


@dataclass
class EvaluationConfig:
    """How a policy is measured during training and after it."""

    every_episodes: Optional[int] = number(at_least=1)
    every_timesteps: Optional[int] = number(at_least=1)
    episodes: int = number(at_least=0, at_most=1_000_000)
    n_envs: int = number(at_least=1, at_most=10_000)
    deterministic: bool = required()
    seed: Optional[int] = number(at_least=0)


@dataclass
class CheckpointConfig:
    """How often the exact state is kept."""

    every_timesteps: Optional[int] = number(at_least=1)
    every_minutes: Optional[float] = number(above=0)
    keep_last: int = number(at_least=1)


@dataclass
class Config:
    """One run."""

    seed: int = number(at_least=0, at_most=2**32 - 1)
    total_timesteps: Optional[int] = number(at_least=1)
    total_episodes: Optional[int] = number(at_least=1)
    init_from: Optional[str] = None  # not in the configs of older runs
    output_dir: str = required()
    name: Optional[str] = required()
    tags: list[str] = field(default_factory=list)
    force: bool = required()
    algo: Any = MISSING
    env: Any = MISSING
    normalize: NormalizeConfig = field(default_factory=NormalizeConfig)  # not in the configs of older runs
    hardware: HardwareConfig = field(default_factory=HardwareConfig)
    logger: LoggerConfig = field(default_factory=LoggerConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)


def schemas() -> dict[str, type]:
    """Return every schema by its place in the config, those of plug-in packages included."""
    own = {f"schema/algo/{spec.name}": spec.config for spec in registry.algos().values()}
    own |= {f"schema/env/{spec.name}": spec.config for spec in registry.envs().values()}
    return {"schema/config": Config} | {path: config for path, config in own.items() if config is not None}
