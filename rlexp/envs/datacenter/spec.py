"""What the runner knows of ``env=datacenter`` before it is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omegaconf import MISSING

from rlexp.config.fields import choice, number, required
from rlexp.registry import EnvSpec

METRICS = ("power_kw", "servers_kw", "comfort", "comfort_west", "comfort_east", "step_reward")
"""Means of a year and of a month, in kilowatts, shares of steps, and reward."""


@dataclass
class DataCenterConfig:
    """Settings of :class:`rlexp.envs.datacenter.env.DataCenterEnv`; ``evaluation_*`` replace ``*`` in evaluations."""

    name: str = required()
    backend: str = choice("engine", "surrogate")
    weather: Any = MISSING
    weather_noise: float = number(at_least=0)
    evaluation_weather: Any = MISSING
    evaluation_weather_noise: float = number(at_least=0)
    scaling: str = choice("paper", "informative")
    days: int = number(at_least=1, at_most=365)
    timeout_s: float = number(above=0)


SPECS = (
    EnvSpec(
        "datacenter",
        "rlexp.envs.datacenter.env:DataCenterEnv",
        "Two-zone data-centre cooling on EnergyPlus, a year an episode; server load hidden",
        actions="continuous",
        observations="vector",
        controllers=("builtin", "constant", "pi_fan", "schedule_aware"),
        metrics=METRICS,
        figures=(("power_kw_mean", "{:.1f} kW"), ("comfort_mean", "comfort {:.1%} of the time")),
        tracker="rlexp.envs.datacenter.months:Months",
        gymnasium_id="rlexp/DataCenter-v0",
        config=DataCenterConfig,
    ),
)
