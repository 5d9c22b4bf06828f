"""Stable-Baselines3's advantage actor-critic."""

from __future__ import annotations

import stable_baselines3

from rlexp.algos.steady_log import SteadyLog

__all__ = ["A2C"]


class A2C(SteadyLog, stable_baselines3.A2C):
    """:class:`stable_baselines3.A2C` as it is, but for when it logs: its updates are too many for a row each."""
