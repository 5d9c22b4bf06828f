"""Data for the surrogate's constants: the engine under varied actions, and what its machines do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlexp.envs.datacenter import task
from rlexp.envs.datacenter.controllers import REFERENCES, Reference
from rlexp.envs.datacenter.weather import Floats, load

PROGRAMME = (
    ("chicago", "excitation", 150),
    ("chicago", "pi_fan", 365),
    ("chicago", "builtin", 100),
    ("chicago", "constant", 100),
    ("stockholm", "excitation", 100),
    ("stockholm", "pi_fan", 100),
    ("stockholm", "builtin", 365),
    ("stockholm", "constant", 200),
)
"""Simulations to collect data from: weather, controller, days from the first of January."""
ZONES = ("West", "East")

_PER_ZONE = {
    "mixed": ("System Node Temperature", "{} Zone Mixed Air Node"),
    "fan_out": ("System Node Temperature", "{} Zone Supply Fan Outlet Node"),
    "direct_out": ("System Node Temperature", "{} Zone DEC Outlet Node"),
    "indirect_out": ("System Node Temperature", "{} Zone IEC Outlet Node"),
    "supply": ("System Node Temperature", "{} Air Loop Outlet Node"),
    "inlet": ("System Node Temperature", "{} Zone Inlet Node"),
    "supply_humidity": ("System Node Humidity Ratio", "{} Air Loop Outlet Node"),
    "flow": ("System Node Mass Flow Rate", "{} Air Loop Outlet Node"),
    "outdoor_flow": ("System Node Mass Flow Rate", "{} Outside Air Inlet Node"),
    "fan": ("Fan Electricity Rate", "{} Zone Supply Fan"),
    "indirect": ("Evaporative Cooler Electricity Rate", "{} Data Center IEC"),
    "expansion": ("Cooling Coil Electricity Rate", "{} DX Cooling Coil"),
    "expansion_heat": ("Cooling Coil Total Cooling Rate", "{} DX Cooling Coil"),
    "water_heat": ("Cooling Coil Total Cooling Rate", "{} Zone CW Cooling Coil"),
}
_COMMON = {
    "wet_bulb": ("Site Outdoor Air Wetbulb Temperature", "Environment"),
    "pressure": ("Site Outdoor Air Barometric Pressure", "Environment"),
    "chiller": ("Chiller Electricity Rate", "Chiller"),
    "chilled_pump": ("Pump Electricity Rate", "CW Circ Pump"),
    "condenser_pump": ("Pump Electricity Rate", "Cond Circ Pump"),
    "tower": ("Cooling Tower Fan Electricity Rate", "Cooling Tower"),
}
WATCHED = [
    *_COMMON.values(),
    *((name, key.format(zone)) for zone in ZONES for name, key in _PER_ZONE.values()),
]


class Excitation(Reference):
    """Setpoints and flows held for a random time; half of the flows follow a random target instead.

    :param seed: of the random actions
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._left = [0, 0]
        self._setpoint, self._flow, self._target = np.full((3, 2), 20.0)
        self._follows = [False, False]
        self._integral = [3.5, 3.5]

    def act(self, values: Floats, step: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the current actions, or full cooling above 50 degrees, where the heat of servers runs away.

        :param values: observation
        :param step: not used
        """
        setpoints, flows = [0.0, 0.0], [0.0, 0.0]
        for zone in range(2):
            if self._left[zone] == 0:
                self._left[zone] = int(self._rng.integers(1, 20))
                self._setpoint[zone] = self._rng.uniform(10.0, 40.0 if self._rng.random() < 0.25 else 22.0)
                self._flow[zone] = self._rng.uniform(*task.FLOW_BOUNDS)
                self._target[zone] = self._rng.uniform(20.0, 27.0)
                self._follows[zone] = bool(self._rng.random() < 0.5)
            self._left[zone] -= 1
            error = float(values[1 + zone] - self._target[zone])
            self._integral[zone] = float(np.clip(self._integral[zone] + 0.1 * error, *task.FLOW_BOUNDS))
            following = float(np.clip(self._integral[zone] + 0.4 * error, *task.FLOW_BOUNDS))
            setpoints[zone] = float(self._setpoint[zone])
            flows[zone] = following if self._follows[zone] else float(self._flow[zone])
            if values[1 + zone] > 50.0:
                setpoints[zone], flows[zone] = task.SETPOINT_BOUNDS[0], task.FLOW_BOUNDS[1]
        return (setpoints[0], setpoints[1]), (flows[0], flows[1])


@dataclass(frozen=True)
class EngineData:
    """One simulation: ``(n,)`` arrays, values during each step or at its end.

    :param city: of the weather
    :param controller: ``"excitation"`` or a reference controller
    :param actions: ``(n, 4)``
    :param outdoor: outdoor temperatures
    :param temperatures: of the zones, ``(n + 1, 2)``, the first before the first step
    :param common: values of the machines that both zones share
    :param zones: values of each zone's machines
    """

    city: str
    controller: str
    actions: Floats
    outdoor: Floats
    temperatures: Floats
    common: dict[str, Floats]
    zones: tuple[dict[str, Floats], dict[str, Floats]]


def collect(city: str, controller: str, n_steps: int, seed: int = 1) -> EngineData:
    """Run the engine and collect what its machines do.

    :param city: of the weather
    :param controller: ``"excitation"`` or a reference controller
    :param n_steps: number of steps
    :param seed: of ``"excitation"``
    """
    from rlexp.envs.datacenter.engine import Engine

    reference = Excitation(seed) if controller == "excitation" else REFERENCES[controller]()
    engine = Engine(watched=WATCHED)
    values = engine.begin(load(city), n_steps)
    rows, actions = [values], []
    for step in range(n_steps):
        chosen = reference.act(values, step)
        setpoints, flows = chosen if chosen is not None else ((np.nan, np.nan), (np.nan, np.nan))
        values = engine.step(setpoints, flows)
        rows.append(values)
        actions.append((*setpoints, *flows))
    engine.close()
    table = np.array(rows)
    ends = table[1:, 5:]
    common = {name: ends[:, index] for index, name in enumerate(_COMMON)}
    common["wet_bulb"], common["pressure"] = table[:-1, 5], table[:-1, 6]
    zones = []
    for zone in range(2):
        first = len(_COMMON) + zone * len(_PER_ZONE)
        zones.append({name: ends[:, first + index] for index, name in enumerate(_PER_ZONE)})
    return EngineData(
        city, controller, np.array(actions), table[:-1, 0], table[:, 1:3], common, (zones[0], zones[1])
    )
