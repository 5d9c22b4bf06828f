"""Checks of a composed config that need nothing to be built."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from rlexp import registry
from rlexp.config.schema import Config
from rlexp.errors import UsageError, did_you_mean

_LARGEST_INT = 2**63 - 1  # what NumPy and torch count with
_LARGEST_FLOAT = 3.4e38  # what they compute with: float32
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
    _check_wandb(cfg)
    if cfg.hardware.ray is not None:
        _check_ray(cfg)
    on_policy = "n_steps" in cfg.algo and "batch_size" in cfg.algo and "n_epochs" in cfg.algo
    if on_policy and cfg.algo.batch_size > cfg.algo.n_steps * cfg.hardware.n_envs:
        raise UsageError(
            f"algo.batch_size: {cfg.algo.batch_size} given, allowed is at most algo.n_steps x hardware.n_envs = "
            f"{cfg.algo.n_steps * cfg.hardware.n_envs}"
        )


def check_interpolations(cfg: DictConfig) -> None:
    """Resolve every ``${...}`` once.

    :raises UsageError: naming the key whose value cannot be resolved
    """
    for path, parent, key in _interpolations(cfg, ""):
        given = OmegaConf.to_container(parent)[key]  # type: ignore[index]
        try:
            _ = parent[key]
        except Exception as error:  # a resolver may raise anything
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            if isinstance(error, RecursionError) or reason.startswith("Recursive"):
                reason = "it refers to itself"
            raise UsageError(f"{path}: '{given}' given; {reason}") from error


def _interpolations(node: Any, prefix: str) -> Iterator[tuple[str, Any, Any]]:
    keys = range(len(node)) if isinstance(node, ListConfig) else list(node)
    for key in keys:
        path = f"{prefix}{key}"
        if OmegaConf.is_interpolation(node, key):
            yield path, node, key
        elif not OmegaConf.is_missing(node, key) and OmegaConf.is_config(node[key]):
            yield from _interpolations(node[key], f"{path}.")


def _check_keys(node: DictConfig, prefix: str, fields: dict[str, Any]) -> None:
    found = {str(key) for key in node}
    for key in sorted(found - set(fields)):
        hint = did_you_mean(f"{prefix}{key}", [f"{prefix}{name}" for name in fields])
        raise UsageError(f"{prefix}{key}: there is no such key{hint}")
    for key in sorted(set(fields) - found):
        raise UsageError(f"{prefix}{key}: cannot be deleted; give it a value")


def _check_ranges(node: DictConfig, prefix: str, schema: Any) -> None:
    fields = {f.name: f for f in dataclasses.fields(schema)} if dataclasses.is_dataclass(schema) else {}
    if fields:
        _check_keys(node, prefix, fields)
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
    shown = value
    if limits.get("automatic"):
        value = _check_automatic(path, value, limits["automatic"])
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    if not math.isfinite(value):
        raise UsageError(f"{path}: {value} given, a finite number is needed")
    largest = _LARGEST_INT if isinstance(value, int) else _LARGEST_FLOAT
    if abs(value) > largest:
        raise UsageError(f"{path}: {value:g} given, must be at most {largest:g}")
    bounds = [(words, limits[key], holds) for words, key, holds in _BOUNDS if limits.get(key) is not None]
    if not all(holds(value, bound) for _, bound, holds in bounds):
        allowed = " and ".join(f"{words} {bound}" for words, bound, _ in bounds)
        raise UsageError(f"{path}: {shown} given, must be {allowed}")


def _check_automatic(path: str, value: Any, forms: str) -> float | None:
    """Return the number in ``auto``, ``auto_0.1`` or ``0.1``; None where there is none."""
    start = value.removeprefix("auto_") if isinstance(value, str) and "auto_" in forms else value
    if value == "auto":
        return None
    if isinstance(start, (int, float)) and not isinstance(start, bool):
        return float(start)
    try:
        if start is value:
            raise ValueError
        return float(start)
    except ValueError:
        raise UsageError(f"{path}: '{value}' given, allowed are {forms}") from None


def _check_wandb(cfg: DictConfig) -> None:
    """Check the rules of W&B, which it would tell only after the run has begun."""
    if cfg.logger.wandb == "disabled":
        return
    for tag in cfg.tags:
        if not 1 <= len(tag) <= 64:
            raise UsageError(f"tags: '{tag}' given, W&B takes 1 to 64 characters; or logger=none")
    project = cfg.logger.project
    if not 1 <= len(project) <= 128 or set(project) & set("/\\#?%:"):
        raise UsageError(
            f"logger.project: '{project}' given, W&B takes 1 to 128 characters without / \\ # ? % :; or logger=none"
        )
    if cfg.name is not None and not 1 <= len(cfg.name) <= 128:
        raise UsageError(f"name: {len(cfg.name)} characters given, W&B takes 1 to 128; or logger=none")


def _check_sequences(algo: DictConfig, n_envs: int) -> None:
    if not {"sequence_length", "burn_in", "period"} <= set(algo):
        return
    for key in ("net_arch", "head_arch"):
        if not isinstance(algo[key], ListConfig) or not all(_is_size(n) for n in algo[key]):
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


def _is_size(n: Any) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and n > 0


def _check_net_arch(net_arch: Any) -> None:
    layers = net_arch.values() if isinstance(net_arch, DictConfig) else [net_arch]
    for units in layers:
        if not isinstance(units, ListConfig) or not all(_is_size(n) for n in units):
            given = OmegaConf.to_container(net_arch) if OmegaConf.is_config(net_arch) else net_arch
            raise UsageError(
                f"algo.net_arch: {given} given, a list of positive numbers of units is needed, e.g. [64,64], "
                "or one list per network, e.g. {pi:[64],vf:[64]}"
            )
