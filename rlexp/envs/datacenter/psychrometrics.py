"""Moist air, compiled: what the surrogate needs of it (ASHRAE Handbook Fundamentals 2017, chapter 1)."""

from __future__ import annotations

import math
from typing import Any

from rlexp.buffers.jit import compiled

HEAT_OF_AIR = 1004.8
"""Dry air, J/(kg K)."""
HEAT_OF_MOISTURE = 1859.0
"""By how much a kg of vapour adds to that, J/(kg K)."""
HEAT_OF_VAPOUR = 2.501e6
"""Latent heat of evaporation, J/kg."""


@compiled
def saturation_pressure(temperature: float) -> Any:
    """Return the saturation pressure in pascal over water, below 0 degrees over ice."""
    kelvin = temperature + 273.15
    if temperature >= 0.0:
        return math.exp(
            -5.8002206e3 / kelvin
            + 1.3914993
            - 4.8640239e-2 * kelvin
            + 4.1764768e-5 * kelvin**2
            - 1.4452093e-8 * kelvin**3
            + 6.5459673 * math.log(kelvin)
        )
    return math.exp(
        -5.6745359e3 / kelvin
        + 6.3925247
        - 9.677843e-3 * kelvin
        + 6.2215701e-7 * kelvin**2
        + 2.0747825e-9 * kelvin**3
        - 9.484024e-13 * kelvin**4
        + 4.1635019 * math.log(kelvin)
    )


@compiled
def saturation_humidity(temperature: float, pressure: float) -> Any:
    """Return the humidity ratio of saturated air, kg/kg."""
    partial = min(saturation_pressure(min(temperature, 80.0)), 0.9 * pressure)
    return 0.621945 * partial / (pressure - partial)


@compiled
def humidity_ratio(temperature: float, relative_humidity: float, pressure: float) -> Any:
    """Return the humidity ratio, kg/kg, of air with a relative humidity in per cent."""
    partial = relative_humidity / 100.0 * saturation_pressure(temperature)
    return 0.621945 * partial / (pressure - partial)


@compiled
def wet_bulb(temperature: float, humidity: float, pressure: float) -> Any:
    """Return the wet-bulb temperature, to about 0.1 K: Newton's method on the psychrometer equation.

    :param temperature: dry bulb, degrees Celsius
    :param humidity: kg/kg
    :param pressure: pascal
    """
    partial = pressure * humidity / (0.621945 + humidity)
    gamma = 6.62e-4 * pressure  # ventilated psychrometer, Pa/K
    found = temperature
    for _ in range(5):  # convex and increasing: from above it converges from above
        saturated = 610.94 * math.exp(17.625 * found / (found + 243.04))  # Magnus formula
        slope = saturated * 4283.8 / (found + 243.04) ** 2
        found -= (saturated - gamma * (temperature - found) - partial) / (slope + gamma)
    return found
