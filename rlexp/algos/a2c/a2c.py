"""Stable-Baselines3's advantage actor-critic."""

from __future__ import annotations

import stable_baselines3

from rlexp.algos.a2c.spec import A2CConfig
from rlexp.algos.common.resumable_logging import ResumableLogging


class A2C(ResumableLogging, stable_baselines3.A2C):
    """:class:`stable_baselines3.A2C` as it is, but for when it logs: its updates are too many for a row each."""

    config = A2CConfig
