"""The year without the engine: :mod:`rlexp.envs.datacenter.plant` behind the engine's interface."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from rlexp.envs.datacenter import plant, task
from rlexp.envs.datacenter.constants import SHARED, ZONE
from rlexp.envs.datacenter.weather import Floats, Weather, quarter_hours

_LIGHTS = 284.0
_LIGHTS_BY_HOUR = np.array(
    [*[0.05] * 9, 0.9, 0.95, 1.0, 0.95, 0.8, 0.9, 1.0, 1.0, *[0.05] * 7]
)  # schedule of the building model
_FIRST_DAY = 1  # of the year, a Tuesday
_SCALED = ("fan_0", "fan_1", "fan_2", "fan_3", "secondary_fan", "secondary_pump")
_REFERENCE_ELEVATION = 61.0  # m, Stockholm
# Under the slab, by month; building model.
_GROUND = np.array([20.03, 20.03, 20.13, 20.3, 20.43, 20.52, 20.62, 20.77, 20.78, 20.55, 20.44, 20.2])
_START = np.array([23.0, 23.0, 23.0, 15.0, 0.005, 12.3, 10.0])


class Surrogate:
    """Steps the identified model through a year; with the methods of :class:`rlexp.envs.datacenter.engine.Engine`."""

    name = "surrogate"

    def __init__(self) -> None:
        self._state = np.empty((2, plant.N_STATE))
        self._out = np.empty(5)
        self._step = 0

    def begin(self, weather: Weather, n_steps: int) -> Floats:
        """Start a year; the days before it are those of the engine's warm-up, the first day over and over."""
        zones, self._shared = constants_for(weather)
        self._zones = zones
        self._air = outdoor_air(weather)
        self._loads = task.LOADS[np.arange(task.STEPS_PER_YEAR) // task.STEPS_PER_HOUR % 24]
        self._lights = lights_of_year()
        self._state[:] = _START
        warm = task.STEPS_PER_DAY
        self._step = 0
        values = np.zeros(5)
        for step in range(7 * warm):
            setpoints, flows = (10.0, 10.0), self._holding()
            values = self._advance(step % warm, 0, setpoints, flows)
        return values

    def step(self, setpoints: Sequence[float], flows: Sequence[float]) -> Floats:
        """Hold supply temperatures and fan flows for 15 minutes; NaN: the building's own controllers."""
        step = self._step
        self._step = step + 1
        return self._advance(step, min(step + 1, task.STEPS_PER_YEAR - 1), setpoints, flows)

    def own_controllers(self) -> Floats:
        """Leave the next 15 minutes to the building's own controllers."""
        return self.step((math.nan, math.nan), (math.nan, math.nan))

    def close(self) -> None:
        """Nothing is left behind."""

    def _advance(self, step: int, seen: int, setpoints: Sequence[float], flows: Sequence[float]) -> Floats:
        plant.advance(
            self._state, self._zones, self._shared, self._air, self._loads, self._lights, step, seen,
            setpoints[0], setpoints[1], flows[0], flows[1], self._out,
        )  # fmt: skip
        return self._out.copy()

    def _holding(self) -> tuple[float, float]:
        """Flows that bring the zones to 23 degrees, as the building's own dampers do while the engine warms up."""
        error = self._state[:, plant.AIR] - 23.0
        west, east = np.clip(3.0 + 1.5 * error, *task.FLOW_BOUNDS)
        return float(west), float(east)


def new_states(n_plants: int) -> Floats:
    """Return states to begin a simulation with, ``(n_plants, 2, N_STATE)``; they settle within days."""
    return np.broadcast_to(_START, (n_plants, 2, plant.N_STATE)).copy()


def constants_for(weather: Weather) -> tuple[Floats, Floats]:
    """Return the constants of the zones, ``(2, N_ZONE)``, and the shared ones, at the elevation of a weather."""
    return scaled(ZONE, weather), np.array(list(SHARED.values()))


def scaled(zones: Sequence[dict[str, float]], weather: Weather) -> Floats:
    """Return the constants of the zones at the elevation of a weather, ``(2, N_ZONE)``."""
    scale = air_scale(weather)
    return np.array(
        [[value * scale if name in _SCALED else value for name, value in zone.items()] for zone in zones]
    )


def air_scale(weather: Weather) -> float:
    """Return by how much more air fans must move than where the constants come from, for the same mass."""

    def pressure(elevation: float) -> float:
        return float((1.0 - 2.25577e-5 * elevation) ** 5.2559)

    with weather.origin.open(encoding="latin-1") as file:
        elevation = float(file.readline().split(",")[9])
    return pressure(_REFERENCE_ELEVATION) / pressure(elevation)


def outdoor_air(weather: Weather) -> Floats:
    """Return what surrounds the building in every step, ``(35040, 5)``; see :func:`plant.advance`."""
    series = [
        quarter_hours(values) for values in (weather.dry_bulb, weather.relative_humidity, weather.pressure)
    ]
    return np.column_stack([plant.outdoor_air(*series), ground_of_year()])


@lru_cache(maxsize=1)
def lights_of_year() -> Floats:
    """Return the watts of one zone's lights in every step, ``(35040,)``: full schedule on weekdays only."""
    steps = np.arange(task.STEPS_PER_YEAR)
    hours, weekdays = steps // task.STEPS_PER_HOUR % 24, (_FIRST_DAY + steps // task.STEPS_PER_DAY) % 7
    return np.asarray(_LIGHTS * np.where(weekdays < 5, _LIGHTS_BY_HOUR[hours], 0.05))


@lru_cache(maxsize=1)
def ground_of_year() -> Floats:
    """Return the temperature under the slab in every step, ``(35040,)``."""
    return np.repeat(_GROUND, [days * task.STEPS_PER_DAY for days in task.MONTHS])
