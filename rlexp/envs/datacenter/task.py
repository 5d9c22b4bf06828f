"""What the task is: bounds, reward, scalings and calendar (Biemann et al. 2021 and the author's page)."""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

STEPS_PER_HOUR = 4
STEPS_PER_DAY = 24 * STEPS_PER_HOUR
DAYS = 365
STEPS_PER_YEAR = DAYS * STEPS_PER_DAY

SETPOINT_BOUNDS = (10.0, 40.0)
"""Supply air, degrees Celsius."""
FLOW_BOUNDS = (1.75, 7.0)
"""Fan, kg/s."""
COMFORT = (22.0, 25.0)
"""Where a zone counts as comfortable, degrees Celsius."""

GUARD = 80.0
"""Where the plant's own protection takes a zone's loop over until the zone has cooled: coldest setpoint, largest flow.

Servers draw more power the warmer the air they breathe, without limit; left alone, a zone that is hardly cooled passes
140 degrees within hours and the engine refuses to go on. Published runs peak at 73 degrees, below the guard."""

TARGET = 23.5
LOWEST, HIGHEST = 23.0, 24.0
PEAK_WIDTH = 0.5
"""lambda_1 of the reward, per square kelvin."""
SLOPE = 0.1
"""lambda_2 of the reward, per kelvin outside of [LOWEST, HIGHEST]."""
POWER_PRICE = 1e-5
"""lambda_P of the reward, per watt: 1 per 100 kW."""

SCALINGS: dict[str, tuple[Floats, Floats]] = {
    # The page's arrays: temperatures over [-20, 50] degrees, powers over [0, 1 GW].
    "paper": (
        np.array([-20.0, -20.0, -20.0, 0.0, 0.0]),
        np.array([50.0, 50.0, 50.0, 1e9, 1e9]),
    ),
    # What occurs: zones within 10 K of the target, servers up to 120 kW, cooling up to 50 kW.
    "informative": (
        np.array([-20.0, 13.5, 13.5, 0.0, 0.0]),
        np.array([50.0, 33.5, 33.5, 120e3, 50e3]),
    ),
}

MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
MONTH_ENDS = tuple(STEPS_PER_DAY * int(days) for days in np.cumsum(MONTHS))
"""Steps after which a month has passed."""

LOADS = np.repeat([0.5, 0.75, 1.0, 0.8], [6, 2, 10, 6])
"""Processor load of the servers by hour of the day, ``(24,)``; the same every day, and not observed."""


def load_at(step: int) -> float:
    """Return the processor load during a step of the year."""
    return float(LOADS[step // STEPS_PER_HOUR % 24])


def reward(west: float, east: float, power: float) -> float:
    """Reward of a step, a function of what is observed after it.

    ``R_W + R_E - lambda_P (P_it + P_hvac)`` with
    ``R_i = exp(-lambda_1 (T_i - 23.5)^2) - lambda_2 ([23 - T_i]+ + [T_i - 24]+)``; Biemann et al. 2021, section 3.

    :param west: temperature of the west zone in degrees Celsius
    :param east: temperature of the east zone in degrees Celsius
    :param power: servers, lights and cooling together, in watts
    """
    return zone_reward(west) + zone_reward(east) - POWER_PRICE * power


def zone_reward(temperature: float) -> float:
    """``R_i`` of :func:`reward`, at most 1."""
    outside = max(0.0, LOWEST - temperature) + max(0.0, temperature - HIGHEST)
    return math.exp(-PEAK_WIDTH * (temperature - TARGET) ** 2) - SLOPE * outside


def rewards(values: Floats) -> Floats:
    """Return the rewards of many steps at once.

    :param values: what was observed after each, ``(n, 5)``
    :return: ``(n,)``
    """
    zones = values[:, 1:3]
    outside = np.maximum(0.0, LOWEST - zones) + np.maximum(0.0, zones - HIGHEST)
    comfort = np.exp(-PEAK_WIDTH * (zones - TARGET) ** 2) - SLOPE * outside
    return np.asarray(comfort.sum(axis=1) - POWER_PRICE * values[:, 3:5].sum(axis=1))


def month_of(step: int) -> int:
    """Return the month in which a step of the year lies, 0 to 11."""
    return bisect_right(MONTH_ENDS, step)
