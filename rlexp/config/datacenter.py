"""What the data-centre task can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omegaconf import MISSING

from rlexp.config.fields import choice, given, number


@dataclass
class DataCenterConfig:
    """Two-zone data-centre cooling; see :class:`rlexp.envs.datacenter.env.DataCenterEnv`."""

    name: str = given()
    backend: str = choice("engine", "surrogate")
    weather: Any = MISSING
    weather_noise: float = number(at_least=0)
    evaluation_weather: Any = MISSING
    evaluation_weather_noise: float = number(at_least=0)
    scaling: str = choice("paper", "informative")
    days: int = number(at_least=1, at_most=365)
    timeout_s: float = number(above=0)
