"""Default interval between evaluations: ``${rlexp_interval:...}`` in ``conf/evaluation/default.yaml``."""

from __future__ import annotations

from omegaconf import DictConfig, OmegaConf

PER_RUN = 20
"""Evaluations over the budget of a run, the last one at its end."""
LEAST_TIMESTEPS = 1000
"""Steps between two evaluations, at least."""

KEYS = {"every_episodes": "total_episodes", "every_timesteps": "total_timesteps"}
"""The keys of ``evaluation`` that are intervals, each with the budget that is counted in the same unit."""


def interval(budget: str, *, _parent_: DictConfig, _root_: DictConfig) -> int | None:
    """Return after how many episodes or steps a run is evaluated; None without such a budget.

    :param budget: ``"total_episodes"`` or ``"total_timesteps"``
    """
    total: int | None = _root_[budget]
    if total is None:
        return None
    least: int = LEAST_TIMESTEPS if budget == "total_timesteps" else _parent_.episodes
    return max(1, least, -(-total // PER_RUN))


def is_default(evaluation: DictConfig, key: str) -> bool:
    """Return whether no interval is set."""
    return bool(OmegaConf.is_interpolation(evaluation, key))
