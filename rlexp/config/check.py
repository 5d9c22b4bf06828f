"""Checks of a composed config that need nothing to be built."""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from rlexp import registry
from rlexp.config.schema import Config
from rlexp.errors import UsageError, did_you_mean

_BOUNDS = (
    ("greater than", "above", operator.gt),
    ("at least", "at_least", operator.ge),
    ("less than", "below", operator.lt),
    ("at most", "at_most", operator.le),
)


def check(cfg: DictConfig) -> None:
    """Refuse what cannot be run.

    :raises UsageError: naming the key, what was given and what is allowed
    """
    missing = sorted(OmegaConf.missing_keys(cfg))
    if missing:
        raise UsageError(f"{', '.join(missing)}: no value given; set it as {missing[0]}=...")
    _check_ranges(cfg, "", Config)
    if cfg.total_timesteps is None and cfg.total_episodes is None:
        raise UsageError(
            "total_timesteps, total_episodes: no budget given; set at least one, e.g. total_timesteps=100000"
        )
    _check_net_arch(cfg.algo.get("net_arch", ListConfig([])))
    _check_sequences(cfg.algo, cfg.hardware.n_envs)
    if cfg.hardware.ray is not None:
        _check_ray(cfg)
    on_policy = "n_steps" in cfg.algo and "batch_size" in cfg.algo and "n_epochs" in cfg.algo
    if on_policy and cfg.algo.batch_size > cfg.algo.n_steps * cfg.hardware.n_envs:
        raise UsageError(
            f"algo.batch_size: {cfg.algo.batch_size} given, allowed is at most algo.n_steps x hardware.n_envs = "
            f"{cfg.algo.n_steps * cfg.hardware.n_envs}"
        )


def _check_ranges(node: DictConfig, prefix: str, schema: Any) -> None:
    fields = {f.name: f for f in dataclasses.fields(schema)} if dataclasses.is_dataclass(schema) else {}
    for key in node:
        value, path = node[key], f"{prefix}{key!s}"
        if isinstance(value, DictConfig):
            _check_ranges(value, f"{path}.", OmegaConf.get_type(value))
        elif str(key) in fields:
            _check_value(path, value, fields[str(key)].metadata)


def _check_value(path: str, value: Any, limits: Any) -> None:
    choices = limits.get("choices")
    if choices and value not in choices:
        raise UsageError(
            f"{path}: '{value}' given, allowed are {', '.join(choices)}{did_you_mean(str(value), choices)}"
        )
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    if not math.isfinite(value):
        raise UsageError(f"{path}: {value} given, a finite number is needed")
    bounds = [(words, limits[key], holds) for words, key, holds in _BOUNDS if limits.get(key) is not None]
    if not all(holds(value, bound) for _, bound, holds in bounds):
        allowed = " and ".join(f"{words} {bound}" for words, bound, _ in bounds)
        raise UsageError(f"{path}: {value} given, must be {allowed}")


def _check_sequences(algo: DictConfig, n_envs: int) -> None:
    if not {"sequence_length", "burn_in", "period"} <= set(algo):
        return
    for key in ("net_arch", "head_arch"):
        if not isinstance(algo[key], ListConfig) or not all(isinstance(n, int) and n > 0 for n in algo[key]):
            given = OmegaConf.to_container(algo[key]) if OmegaConf.is_config(algo[key]) else algo[key]
            raise UsageError(
                f"algo.{key}: {given} given, a list of positive numbers of units is needed, e.g. [64]"
            )
    least = max(1, algo.burn_in)
    if algo.sequence_length < least:
        raise UsageError(
            f"algo.sequence_length: {algo.sequence_length} given, must be at least algo.burn_in = {least}"
        )
    if algo.period is not None and not least <= algo.period <= algo.sequence_length:
        raise UsageError(
            f"algo.period: {algo.period} given, must be at least algo.burn_in = {least} and at most "
            f"algo.sequence_length = {algo.sequence_length}"
        )
    period = algo.period or max(least, algo.sequence_length // 2)
    needed = n_envs * (1 + algo.sequence_length // period) * period
    if algo.get("buffer_size", needed) < needed:
        raise UsageError(
            f"algo.buffer_size: {algo.buffer_size} given, must be at least {needed} for hardware.n_envs = {n_envs} and "
            f"algo.sequence_length = {algo.sequence_length}"
        )


def _check_ray(cfg: DictConfig) -> None:
    algo, ray = cfg.algo, cfg.hardware.ray
    if not registry.algo(algo.name).distributed:
        able = ", ".join(spec.name for spec in registry.algos().values() if spec.distributed)
        raise UsageError(
            f"hardware: ray given, which trains {able}; algo={algo.name} trains with hardware=cpu or gpu"
        )
    period = algo.period or max(1, algo.burn_in, algo.sequence_length // 2)
    # What an actor may send at once must fit a shard.
    message = ray.send_every + cfg.hardware.n_envs * (1 + algo.sequence_length // period)
    if algo.buffer_size // period // ray.replay_shards < message:
        raise UsageError(
            f"algo.buffer_size: {algo.buffer_size} given, must be at least {message * period * ray.replay_shards} for "
            f"hardware.ray.replay_shards = {ray.replay_shards}"
        )


def _check_net_arch(net_arch: Any) -> None:
    layers = net_arch.values() if isinstance(net_arch, DictConfig) else [net_arch]
    for units in layers:
        if not isinstance(units, ListConfig) or not all(isinstance(n, int) and n > 0 for n in units):
            given = OmegaConf.to_container(net_arch) if OmegaConf.is_config(net_arch) else net_arch
            raise UsageError(
                f"algo.net_arch: {given} given, a list of positive numbers of units is needed, e.g. [64,64], "
                "or one list per network, e.g. {pi:[64],vf:[64]}"
            )
