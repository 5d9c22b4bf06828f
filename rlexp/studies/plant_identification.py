"""Finds the surrogate's constants on the engine: ``python -m rlexp.studies.plant_identification`` prints them.

The engine runs parts of two training years, Chicago and Stockholm, under actions that are held for a random time, half
of them chosen to keep a zone near a random temperature, and a while under reference controllers; inner temperatures,
flows and powers of single machines are recorded. Then, one after the other: fans and machines by linear regression,
the zones by least squares on the temperatures of a free-running simulation, the tower by maximum likelihood. Nothing is
fitted to the mean power or to rewards, and no other weather is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from rlexp.buffers.jit import compiled
from rlexp.envs.datacenter import plant, task
from rlexp.envs.datacenter.constants import SHARED, ZONE
from rlexp.envs.datacenter.controllers import REFERENCES, Reference
from rlexp.envs.datacenter.psychrometrics import (
    HEAT_OF_AIR,
    HEAT_OF_VAPOUR,
    saturation_humidity,
    wet_bulb,
)
from rlexp.envs.datacenter.surrogate import (
    air_scale,
    ground_of_year,
    lights_of_year,
    new_states,
    outdoor_air,
    scaled,
)
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
"""What is recorded: weather, controller, days from the first of January."""
ZONES = ("West", "East")
SETTLED = 400
"""Steps left out at the start, until the masses have forgotten where they began."""

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

    :param seed: of everything that is drawn
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._left = [0, 0]
        self._setpoint, self._flow, self._target = np.full((3, 2), 20.0)
        self._follows = [False, False]
        self._integral = [3.5, 3.5]

    def act(self, values: Floats, step: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return what is held, or cool hard above 50 degrees, where servers heat themselves up without end."""
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
class Recording:
    """What the engine did in one run: ``(n,)`` arrays, what is true during a step or at its end.

    :param actions: ``(n, 4)``
    :param temperatures: of the zones, ``(n + 1, 2)``, the first before the first step
    """

    city: str
    controller: str
    actions: Floats
    outdoor: Floats
    temperatures: Floats
    common: dict[str, Floats]
    zones: tuple[dict[str, Floats], dict[str, Floats]]


def record(city: str, controller: str, n_steps: int, seed: int = 1) -> Recording:
    """Run the engine and write down what its machines do.

    :param controller: ``"excitation"`` or a reference controller
    """
    from rlexp.envs.datacenter.engine import Engine

    reference = Excitation(seed) if controller == "excitation" else REFERENCES[controller]()
    engine = Engine(watched=WATCHED)
    values = engine.begin(load(city), n_steps)
    rows, actions = [values], []
    for step in range(n_steps):
        wanted = reference.act(values, step)
        setpoints, flows = wanted if wanted is not None else ((np.nan, np.nan), (np.nan, np.nan))
        values = engine.step(setpoints, flows)
        rows.append(values)
        actions.append((*setpoints, *flows))
    engine.close()
    table = np.array(rows)
    ends = table[1:, 5:]
    common = {name: ends[:, place] for place, name in enumerate(_COMMON)}
    common["wet_bulb"], common["pressure"] = table[:-1, 5], table[:-1, 6]
    zones = []
    for zone in range(2):
        first = len(_COMMON) + zone * len(_PER_ZONE)
        zones.append({name: ends[:, first + place] for place, name in enumerate(_PER_ZONE)})
    return Recording(
        city, controller, np.array(actions), table[:-1, 0], table[:, 1:3], common, (zones[0], zones[1])
    )


# ------------------------------------------------------------------------------------------------------- machines


def _fit(columns: list[Floats], target: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(np.column_stack(columns), target, rcond=None)[0])


def _least_squares(misses: Callable[[Floats], Floats], start: Any, **options: Any) -> Floats:
    fit: Any = optimize.least_squares
    return np.asarray(fit(misses, start, loss="soft_l1", f_scale=0.3, **options).x)


def _minimum(cost: Callable[[Floats], float], start: Sequence[float]) -> Floats:
    found: Any = optimize.minimize
    return np.asarray(found(cost, start, method="Nelder-Mead", options={"maxiter": 4000, "maxfev": 4000}).x)


def _joined(recordings: list[Recording], pick: Any) -> Floats:
    return np.concatenate([pick(one) for one in recordings])


def identify_machines(recordings: list[Recording], zone: int) -> dict[str, float]:
    """Return the constants of one zone's fan and indirect cooler."""

    def of(name: str) -> Floats:
        return _joined(recordings, lambda one: one.zones[zone][name])

    scale = _joined(recordings, lambda one: np.full(len(one.outdoor), air_scale(load(one.city))))
    outdoor = _joined(recordings, lambda one: one.outdoor)
    wet = _joined(recordings, lambda one: one.common["wet_bulb"])
    flow = of("flow")
    fan = _fit([flow**0, flow, flow**2, flow**3], of("fan") / scale)
    before, after = of("direct_out"), of("indirect_out")
    setpoint = _joined(recordings, lambda one: one.actions[:, zone])
    wet_from = ZONE[zone]["indirect_wet_from"]
    full = (before - after > 0.5) & (after > setpoint + 0.1)
    dry, watered = full & (outdoor < wet_from - 0.5), full & (outdoor > wet_from + 0.5) & (wet < 23.0)
    power = of("indirect") / scale
    secondary_fan = float(np.median(power[dry]))
    return {
        "largest_flow": float(flow.max()),
        "fan_0": fan[0],
        "fan_1": fan[1],
        "fan_2": fan[2],
        "fan_3": fan[3],
        "indirect_dry": float(np.median((before - after)[dry] / (before - outdoor)[dry])),
        "indirect_wet": float(np.median((before - after)[watered] / (before - wet)[watered])),
        "secondary_fan": secondary_fan,
        "secondary_pump": float(np.median(power[watered])) - secondary_fan,
    }


def identify_last_stages(recordings: list[Recording]) -> dict[str, float]:
    """Return the constants of the DX coil, and of chilled water, chiller and tower."""

    def of(name: str, zone: int) -> Floats:
        return _joined(recordings, lambda one: one.zones[zone][name])

    def common(name: str) -> Floats:
        return _joined(recordings, lambda one: one.common[name])

    outdoor = _joined(recordings, lambda one: one.outdoor)
    heat, before, after = of("expansion_heat", 0), of("indirect_out", 0), of("supply", 0)
    latent = np.maximum(heat - of("flow", 0) * 1.01 * HEAT_OF_AIR * (before - after), 0.0) / HEAT_OF_VAPOUR
    humidity = of("supply_humidity", 0) + latent / of("flow", 0)
    on = heat > 2000.0
    wet = np.array(
        [wet_bulb(t, w, p) for t, w, p in zip(before[on], humidity[on], common("pressure")[on], strict=True)]
    )
    terms = (wet**0, wet, outdoor[on], outdoor[on] ** 2)
    ratio = _fit([heat[on] * term for term in terms], of("expansion", 0)[on])
    air = [array[on] for array in (before, after, humidity, common("pressure"))]
    condensed = (latent / of("flow", 0))[on]
    lowest = _minimum(lambda x: float(np.abs(_condensed(x[0], *air) - condensed).mean()), [9.0])
    water, wet_out = of("water_heat", 1), common("wet_bulb")
    setpoint = _joined(recordings, lambda one: one.actions[:, 1])
    runs = (water > 2000.0) & np.isfinite(setpoint)
    chiller = _fit([water[runs], water[runs] * wet_out[runs]], common("chiller")[runs])
    lift = np.maximum(setpoint - 7.0, 0.5)
    tower = common("tower")
    largest = float(tower.max())
    columns = np.column_stack([wet_out[runs] ** 0, wet_out[runs], setpoint[runs], water[runs] / 1e5])
    turned = tower[runs] / largest

    def unlikely(x: Floats) -> float:
        odds = columns @ x
        return float(np.mean(np.logaddexp(0.0, odds) - turned * odds))

    odds = _minimum(unlikely, [0.0] * 4)
    return {
        "dx_0": ratio[0],
        "dx_wet_bulb": ratio[1],
        "dx_outdoor": ratio[2],
        "dx_outdoor_2": ratio[3],
        "dx_apparatus": float(lowest[0]),
        "dx_largest": float(heat.max()),
        "chiller_0": chiller[0],
        "chiller_wet_bulb": chiller[1],
        "chilled_pump": float(np.median((common("chilled_pump") / np.maximum(water, 1.0) * lift)[runs])),
        "condenser_pump": float(np.median(common("condenser_pump")[runs])),
        "tower_fan": largest,
        "tower_0": float(odds[0]),
        "tower_wet_bulb": float(odds[1]),
        "tower_setpoint": float(odds[2]),
        "tower_load": float(odds[3]) / 1e5,
    }


def _condensed(apparatus: float, before: Floats, after: Floats, humidity: Floats, pressure: Floats) -> Floats:
    saturated = np.array([saturation_humidity(apparatus, p) for p in pressure])
    slope = np.maximum(humidity - saturated, 0.0) / np.maximum(before - apparatus, 0.5)
    return np.asarray(slope * (before - after))


# ---------------------------------------------------------------------------------------------------------- zones

_ZONE_FREE: dict[str, tuple[float, float]] = {
    "air_capacity": (5e5, 2e7),
    "fast_coupling": (1.0, 5e3),
    "fast_capacity": (1e5, 3e7),
    "slow_coupling": (1.0, 5e3),
    "slow_capacity": (1e7, 2e9),
    "outdoor_coupling": (1.0, 500.0),
    "floor_coupling": (10.0, 5e3),
    "plenum_outdoor": (1.0, 500.0),
    "floor_ground": (100.0, 2e4),
    "floor_capacity": (1e6, 1e9),
}
"""What is searched for, and where."""


@compiled
def _free_run(
    c: Any, s: Any, supply: Any, flow: Any, outdoor: Any, ground: Any, loads: Any, lights: Any, out: Any
) -> None:
    for k in range(supply.size):
        for _ in range(plant.SUB_STEPS):
            plant.zone_step(s, c, supply[k], flow[k], outdoor[k], ground[k], loads[k], lights[k])
        out[k, 0], out[k, 1] = s[plant.AIR], s[plant.INLET]


def identify_zone(recordings: list[Recording], zone: int, known: dict[str, float]) -> dict[str, float]:
    """Return the thermal constants of a zone: least squares on zone and inlet temperatures of a free run.

    :param known: all constants of the zone; the ones to be found are where the search begins
    """

    def constants(x: Floats) -> Floats:
        found = known | dict(zip(_ZONE_FREE, np.exp(x[:-1]), strict=True)) | {"gain": 1000.0 * x[-1]}
        return np.array(list(found.values()))

    def misses(x: Floats) -> Floats:
        found = constants(x)
        parts = []
        for one in recordings:
            n = len(one.outdoor)
            start = np.full(plant.N_STATE, 23.0)
            start[plant.FLOOR], start[plant.INLET] = 19.0, 13.0
            start[plant.HUMIDITY] = float(one.zones[zone]["supply_humidity"].mean())
            out = np.empty((n, 2))
            steps = np.arange(n)
            _free_run(
                found, start, one.zones[zone]["supply"], one.zones[zone]["flow"], one.outdoor, ground_of_year()[:n],
                task.LOADS[steps // 4 % 24], lights_of_year()[:n], out,
            )  # fmt: skip
            weight = 0.3 if one.controller == "excitation" else 1.0
            parts.append(weight * (out[SETTLED:, 0] - one.temperatures[1 + SETTLED :, zone]))
            parts.append(weight * (out[SETTLED:, 1] - one.zones[zone]["inlet"][SETTLED:]))
        return np.concatenate(parts)

    start = np.array([*(np.log(known[name]) for name in _ZONE_FREE), known["gain"] / 1000.0])
    bounds = np.array([*(np.log(limits) for limits in _ZONE_FREE.values()), (-5.0, 5.0)]).T
    start = np.clip(start, bounds[0] + 1e-6, bounds[1] - 1e-6)
    found = _least_squares(misses, start, bounds=(bounds[0], bounds[1]), max_nfev=30)
    return dict(zip(_ZONE_FREE, np.exp(found[:-1]).tolist(), strict=True)) | {
        "gain": 1000.0 * float(found[-1])
    }


def identify_manager(
    recordings: list[Recording], zones: list[dict[str, float]], shared: dict[str, float]
) -> list[dict[str, float]]:
    """Return how strongly each zone's supply manager, which also moves the mixing box, answers its temperature.

    Least squares on the temperatures under the building's own controllers and under constant actions, for
    which the manager decides the supply in cold weather.
    """
    chosen = [one for one in recordings if one.controller in ("builtin", "constant")]

    def misses(x: Floats) -> Floats:
        parts = []
        for one in chosen:
            n = len(one.outdoor)
            weather = load(one.city)
            constants = scaled(zones, weather)
            constants[:, plant.MANAGER_GAIN], constants[:, plant.MANAGER_OFFSET] = 1000.0 * x[:2], x[2:4]
            constants[:, plant.MIXING_OFFSET] = x[4:]
            out = np.empty((n, 1, 5))
            loads = task.LOADS[np.arange(n) // task.STEPS_PER_HOUR % 24]
            plant.simulate(
                new_states(1), constants, np.array(list(shared.values())), outdoor_air(weather), loads,
                lights_of_year(), one.actions[:, None], out,
            )  # fmt: skip
            weight = 5.0 if one.controller == "builtin" else 1.0  # its temperatures hardly move
            parts.append(weight * (out[SETTLED:, 0, 1:3] - one.temperatures[1 + SETTLED :]).ravel())
        return np.concatenate(parts)

    start = [zone["manager_gain"] / 1000.0 for zone in zones] + [zone["manager_offset"] for zone in zones]
    start += [zone["mixing_offset"] for zone in zones]
    found = _least_squares(misses, start)
    names = ("manager_gain", "manager_offset", "mixing_offset")
    return [
        dict(zip(names, (1000.0 * found[zone], found[2 + zone], found[4 + zone]), strict=True))
        for zone in range(2)
    ]


def identify(recordings: list[Recording]) -> tuple[list[dict[str, float]], dict[str, float]]:
    """Return the constants of west and east, and those that both share."""
    acted = [one for one in recordings if one.controller != "builtin"]
    zones = []
    for zone in range(2):
        known = dict(ZONE[zone]) | identify_machines(acted, zone)
        known |= identify_zone(recordings, zone, known)
        zones.append(known)
    shared = dict(SHARED) | identify_last_stages(acted)
    managers = identify_manager(recordings, zones, shared)
    return [zone | manager for zone, manager in zip(zones, managers, strict=True)], shared


def main() -> None:
    """Record, identify and print, as JSON."""
    recordings = [record(city, controller, days * task.STEPS_PER_DAY) for city, controller, days in PROGRAMME]
    zones, shared = identify(recordings)
    print(json.dumps({"zone": zones, "shared": shared}, indent=4))


if __name__ == "__main__":
    main()
