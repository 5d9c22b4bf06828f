"""Hydra's own settings: only the launcher and the folder of a multirun can be chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlexp.errors import UsageError

# Hydra's plugins; any other target would be called with arguments that are not meant for it.
_TARGETS = ("hydra.", "hydra_plugins.")
_FIXED = {
    "algo.name": "choose an algorithm with algo=...",
    "env.name": "choose an environment with env=...",
    "hydra.run.dir": "the run folder follows from the config; output_dir=... says below which folder",
    "hydra.sweep.subdir": "the run folders follow from their configs; output_dir=... says below which folder",
    "hydra.output_subdir": "the run folder holds the config already, as config.yaml",
    "hydra.mode": "-m runs many, without it one is run",
    "hydra.job.chdir": "relative paths mean the current folder",
}


def check_overrides(overrides: Sequence[str]) -> None:
    """Reject settings that rlexp decides itself.

    :raises UsageError: naming the key
    """
    for override in overrides:
        key = override.partition("=")[0].lstrip("+~")
        if key in _FIXED:
            raise UsageError(f"{key}: cannot be set; {_FIXED[key]}")
        if key.startswith(("hydra.sweeper", "hydra/sweeper")):
            raise UsageError(
                f"{override}: rlexp enumerates the runs of a multirun itself; there is no sweeper to choose"
            )


def check(hydra: DictConfig) -> None:
    """Check what was composed of them.

    :param hydra: Hydra's node of the config
    :raises UsageError: naming the key
    """
    container = OmegaConf.to_container(hydra, resolve=False)
    for key, target in _targets(container, "hydra"):
        if not target.startswith(_TARGETS):
            raise UsageError(
                f"{key}: '{target}' given, only plugins of Hydra (hydra_plugins.*) can be called"
            )
    backend = OmegaConf.select(hydra, "launcher.backend")
    if backend not in (None, "loky"):
        raise UsageError(
            f"hydra.launcher.backend: '{backend}' given, Hydra's joblib launcher supports only loky"
        )
    jobs = OmegaConf.select(hydra, "launcher.n_jobs")
    if jobs == 0:
        raise UsageError(
            "hydra.launcher.n_jobs: 0 given, must be at least 1, or -1 for as many as there are cores"
        )


def _targets(node: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "_target_":
                yield path, str(value)
            else:
                yield from _targets(value, f"{path}.{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _targets(value, f"{path}[{index}]")
