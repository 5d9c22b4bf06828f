"""Checks of a composed config that need nothing to be built."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from rlexp import registry
from rlexp.config.renamed import RENAMED_VALUES
from rlexp.config.schema import Config
from rlexp.config.unknown_key import explain_unknown
from rlexp.config.validate import check_value
from rlexp.errors import UsageError


def check(cfg: DictConfig) -> None:
    """Reject a config that cannot be run.

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
    _check_wandb(cfg)
    if cfg.hardware.ray is not None:
        _check_distributed(cfg)
    _check_normalize(cfg)
    _check_algorithm(cfg)


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
        known = [f"{prefix}{name}" for name in fields]
        given = "..." if OmegaConf.is_config(node[key]) else str(node[key])
        raise UsageError(
            explain_unknown(f"{prefix}{key}", given, known)
            or f"unknown key '{prefix}{key}'; a run has {', '.join(known)}"
        )
    for key in sorted(set(fields) - found):
        raise UsageError(f"{prefix}{key}: cannot be deleted; give it a value")


def _check_ranges(node: DictConfig, prefix: str, schema: Any) -> None:
    fields = {f.name: f for f in dataclasses.fields(schema)} if dataclasses.is_dataclass(schema) else {}
    if fields:
        _check_keys(node, prefix, fields)
    for key in node:
        path, limits = f"{prefix}{key!s}", fields[str(key)].metadata if str(key) in fields else {}
        if isinstance(node[key], DictConfig) and not limits:
            _check_ranges(node[key], f"{path}.", OmegaConf.get_type(node[key]))
        else:
            value = OmegaConf.to_container(node[key]) if OmegaConf.is_config(node[key]) else node[key]
            former = {**RENAMED_VALUES.get(path, {}), **limits.get("former_values", {})}
            check_value(path, value, {**limits, "former_values": former})


def _check_wandb(cfg: DictConfig) -> None:
    """Check the rules of W&B, which would itself report them only after the run has begun."""
    if cfg.logger.mode == "disabled":
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


def _check_distributed(cfg: DictConfig) -> None:
    if not registry.algo(cfg.algo.name).distributed:
        able = ", ".join(spec.name for spec in registry.algos().values() if spec.distributed)
        raise UsageError(
            f"hardware: ray given, which trains {able}; algo={cfg.algo.name} trains with hardware=cpu or gpu"
        )


def _check_normalize(cfg: DictConfig) -> None:
    chosen = [f"normalize.{key}" for key, value in cfg.normalize.items() if value]
    if not chosen:
        return
    spec = registry.algo(cfg.algo.name)
    able = [one.name for one in registry.algos().values() if _can_normalize(one)]
    if spec.name not in able:
        raise UsageError(
            f"{chosen[0]}: true given, which {', '.join(able)} support; algo={spec.name} does not"
        )


def _can_normalize(spec: registry.AlgoSpec) -> bool:
    fields = () if spec.config is None else dataclasses.fields(spec.config)
    names = [field.name for field in fields]
    return (
        spec.trains
        and "VecNormalize" not in spec.unsupported
        and "gamma" in names
        and "demonstrations" not in names
    )


def _check_algorithm(cfg: DictConfig) -> None:
    """Ask the dataclass of the algorithm's settings, which knows what must go together.

    ``check_together(settings, n_envs)`` is asked by the constructor, too; ``check_run(settings, hardware)`` is not.
    """
    schema: Any = OmegaConf.get_type(cfg.algo)
    settings = OmegaConf.to_container(cfg.algo, resolve=True)
    hardware = OmegaConf.to_container(cfg.hardware, resolve=True)
    assert isinstance(settings, dict) and isinstance(hardware, dict)
    try:
        if hasattr(schema, "check_together"):
            schema.check_together(settings, cfg.hardware.n_envs)
        if hasattr(schema, "check_run"):
            schema.check_run(settings, hardware)
    except UsageError as error:
        raise UsageError(f"algo.{error}") from None
