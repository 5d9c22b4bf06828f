"""Reference controllers: what can be had without learning, and what knowing the server load is worth."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from rlexp.envs.datacenter.task import FLOW_BOUNDS, LOADS, SETPOINT_BOUNDS, TARGET, Floats, load_at

COLDEST = SETPOINT_BOUNDS[0]


class Reference(ABC):
    """One year of a controller."""

    @abstractmethod
    def act(self, values: Floats, step: int) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Return setpoints in degrees Celsius and flows in kg/s, west and east; None: the plant's own controllers.

        :param values: the last observation: outdoor, west, east, servers, cooling
        :param step: of the year
        """


class BuiltIn(Reference):
    """The building's own: supply air of 12 to 18 degrees as the zone's load asks for, thermostats at 23 degrees."""

    def act(self, values: Floats, step: int) -> None:
        """Leave it to the plant."""
        return None


class Constant(Reference):
    """The same setpoint and flow all year.

    :param setpoint: degrees Celsius
    :param flow: kg/s
    """

    def __init__(self, setpoint: float = 16.0, flow: float = 4.5) -> None:
        self._action = ((setpoint, setpoint), (flow, flow))

    def act(self, values: Floats, step: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the same again."""
        return self._action


class ProportionalIntegral(Reference):
    """Supply air at 10 degrees, where servers and cooling together need least; a PI controller per zone on the fan.

    It knows nothing of the server load, so every jump of the load is met from behind.

    :param gain: kg/s per kelvin
    :param integral_gain: kg/s per kelvin and step
    """

    def __init__(self, gain: float = 0.4, integral_gain: float = 0.1) -> None:
        self._gain, self._integral_gain = gain, integral_gain
        self._integral = np.full(2, 3.5)

    def act(self, values: Floats, step: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the flows that bring the zones to the target."""
        error = values[1:3] - TARGET
        self._integral = np.clip(self._integral + self._integral_gain * error, *FLOW_BOUNDS)
        west, east = np.clip(self._integral + self._gain * error, *FLOW_BOUNDS)
        return (COLDEST, COLDEST), (float(west), float(east))


class ScheduleAware(Reference):
    """Supply air at 10 degrees; for every level of the server load a flow of its own, learned by integration.

    The load of the coming step is known here, as no observation shows it: what memory can gain at most.

    :param gain: kg/s per kelvin
    :param integral_gain: kg/s per kelvin and step
    """

    def __init__(self, gain: float = 0.4, integral_gain: float = 0.1) -> None:
        self._gain, self._integral_gain = gain, integral_gain
        self._levels = {float(load): np.full(2, 3.5) for load in np.unique(LOADS)}

    def act(self, values: Floats, step: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the flows that keep the zones at the target under the load to come."""
        error = values[1:3] - TARGET
        if step > 0:  # what is seen is the outcome of the step before
            before = load_at(step - 1)
            moved = self._levels[before] + self._integral_gain * error
            self._levels[before] = np.clip(moved, *FLOW_BOUNDS)
        west, east = np.clip(self._levels[load_at(step)] + self._gain * error, *FLOW_BOUNDS)
        return (COLDEST, COLDEST), (float(west), float(east))


REFERENCES: dict[str, type[Reference]] = {
    "builtin": BuiltIn,
    "constant": Constant,
    "pi_fan": ProportionalIntegral,
    "schedule_aware": ScheduleAware,
}
"""The controllers by the name under which ``algo=`` knows them."""
