"""Finds the surrogate's constants on the engine: ``python -m rlexp.studies.plant_identification`` prints them.

The engine runs parts of two training years, Chicago and Stockholm, under actions that are held for a random time, half
of them chosen to keep a zone near a random temperature, and for a while under reference controllers (see
:mod:`rlexp.studies.plant_data`). Then, one after the other: fans and machines by linear regression,
the zones by least squares on the temperatures of a free-running simulation, the tower by maximum likelihood. Nothing is
fitted to the mean power or to rewards, and no other weather is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import optimize

from rlexp.buffers.jit import compiled
from rlexp.envs.datacenter import plant, task
from rlexp.envs.datacenter.constants import SHARED, ZONE
from rlexp.envs.datacenter.psychrometrics import (
    HEAT_OF_AIR,
    HEAT_OF_VAPOUR,
    saturation_humidity,
    wet_bulb,
)
from rlexp.envs.datacenter.surrogate import (
    air_scale,
    lights_of_year,
    new_states,
    outdoor_air,
    scaled,
)
from rlexp.envs.datacenter.weather import Floats, load
from rlexp.studies.plant_data import PROGRAMME, EngineData, collect

SETTLED = 400
"""Steps left out at the start, until the masses have forgotten where they began."""


# ------------------------------------------------------------------------------------------------------- machines


def _fit(columns: list[Floats], target: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(np.column_stack(columns), target, rcond=None)[0])


def _least_squares(misses: Callable[[Floats], Floats], start: Any, **options: Any) -> Floats:
    fit: Any = optimize.least_squares
    return np.asarray(fit(misses, start, loss="soft_l1", f_scale=0.3, **options).x)


def _minimum(cost: Callable[[Floats], float], start: Sequence[float]) -> Floats:
    found: Any = optimize.minimize
    return np.asarray(found(cost, start, method="Nelder-Mead", options={"maxiter": 4000, "maxfev": 4000}).x)


def _joined(datasets: list[EngineData], pick: Any) -> Floats:
    return np.concatenate([pick(one) for one in datasets])


def identify_machines(datasets: list[EngineData], zone: int) -> dict[str, float]:
    """Return the constants of one zone's fan and indirect cooler.

    :param datasets: with actions
    :param zone: 0: west, 1: east
    """

    def of(name: str) -> Floats:
        return _joined(datasets, lambda one: one.zones[zone][name])

    scale = _joined(datasets, lambda one: np.full(len(one.outdoor), air_scale(load(one.city))))
    outdoor = _joined(datasets, lambda one: one.outdoor)
    wet = _joined(datasets, lambda one: one.common["wet_bulb"])
    flow = of("flow")
    fan = _fit([flow**0, flow, flow**2, flow**3], of("fan") / scale)
    before, after = of("direct_out"), of("indirect_out")
    setpoint = _joined(datasets, lambda one: one.actions[:, zone])
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


def identify_last_stages(datasets: list[EngineData]) -> dict[str, float]:
    """Return the constants of the DX coil, and of chilled water, chiller and tower.

    :param datasets: with actions
    """

    def of(name: str, zone: int) -> Floats:
        return _joined(datasets, lambda one: one.zones[zone][name])

    def common(name: str) -> Floats:
        return _joined(datasets, lambda one: one.common[name])

    outdoor = _joined(datasets, lambda one: one.outdoor)
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
    setpoint = _joined(datasets, lambda one: one.actions[:, 1])
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
    "floor_capacity": (1e5, 1e9),
}
"""Free constants of a zone, and their bounds."""


def _simulated(one: EngineData, zones: Sequence[dict[str, float]], shared: dict[str, float]) -> Floats:
    """Return zone and inlet temperatures under the actions of a dataset, west and east, ``(n, 4)``."""
    n = len(one.outdoor)
    weather = load(one.city)
    out = np.empty((n, 4))
    _run(
        new_states(1)[0], scaled(zones, weather), np.array(list(shared.values())), outdoor_air(weather),
        task.LOADS[np.arange(n) // task.STEPS_PER_HOUR % 24], lights_of_year(), one.actions, out,
    )  # fmt: skip
    return out


@compiled
def _run(s: Any, c: Any, g: Any, air: Any, loads: Any, lights: Any, actions: Any, out: Any) -> None:
    shown = np.empty(5)
    for now in range(actions.shape[0]):
        a = actions[now]
        plant.advance(s, c, g, air, loads, lights, now, now, a[0], a[1], a[2], a[3], shown)
        for z in range(2):
            out[now, z], out[now, 2 + z] = s[z, plant.AIR], s[z, plant.INLET]


def identify_zone(
    datasets: list[EngineData], zone: int, zones: Sequence[dict[str, float]], shared: dict[str, float]
) -> dict[str, float]:
    """Return the thermal constants of a zone: least squares on zone and inlet temperatures of a free run.

    :param datasets: to fit
    :param zone: 0: west, 1: east
    :param zones: all constants of both; the free ones of this zone are the initial guess
    :param shared: constants of both
    """
    known = zones[zone]

    def constants(x: Floats) -> dict[str, float]:
        return known | dict(zip(_ZONE_FREE, np.exp(x[:-1]), strict=True)) | {"gain": 1000.0 * x[-1]}

    def misses(x: Floats) -> Floats:
        tried = [*zones]
        tried[zone] = constants(x)
        parts = []
        for one in datasets:
            weight = 0.3 if one.controller == "excitation" else 1.0
            found = _simulated(one, tried, shared)[SETTLED:]
            parts.append(weight * (found[:, zone] - one.temperatures[1 + SETTLED :, zone]))
            parts.append(weight * (found[:, 2 + zone] - one.zones[zone]["inlet"][SETTLED:]))
        return np.concatenate(parts)

    start = np.array([*(np.log(known[name]) for name in _ZONE_FREE), known["gain"] / 1000.0])
    bounds = np.array([*(np.log(limits) for limits in _ZONE_FREE.values()), (-5.0, 5.0)]).T
    start = np.clip(start, bounds[0] + 1e-6, bounds[1] - 1e-6)
    # Larger differences than usual: the number of sub-steps makes the simulation rough in the small.
    found = _least_squares(misses, start, bounds=(bounds[0], bounds[1]), max_nfev=30, diff_step=1e-3)
    return dict(zip(_ZONE_FREE, np.exp(found[:-1]).tolist(), strict=True)) | {
        "gain": 1000.0 * float(found[-1])
    }


def identify_manager(
    datasets: list[EngineData], zones: list[dict[str, float]], shared: dict[str, float]
) -> list[dict[str, float]]:
    """Return how strongly each zone's supply manager, which also moves the mixing box, answers its temperature.

    Least squares on the temperatures under the building's own controllers.

    :param datasets: those under other controllers are left out
    :param zones: constants of west and east
    :param shared: constants of both
    """
    chosen = [one for one in datasets if one.controller == "builtin"]
    names = ("manager_gain", "manager_offset", "mixing_offset")

    def misses(x: Floats) -> Floats:
        tried = [
            zone | dict(zip(names, (1000.0 * x[k], x[2 + k], x[4 + k]), strict=True))
            for k, zone in enumerate(zones)
        ]
        return np.concatenate(
            [
                (_simulated(one, tried, shared)[SETTLED:, :2] - one.temperatures[1 + SETTLED :]).ravel()
                for one in chosen
            ]
        )

    start = [zone["manager_gain"] / 1000.0 for zone in zones] + [zone["manager_offset"] for zone in zones]
    start += [zone["mixing_offset"] for zone in zones]
    found = _least_squares(misses, start, diff_step=1e-3)
    return [
        dict(zip(names, (1000.0 * found[zone], found[2 + zone], found[4 + zone]), strict=True))
        for zone in range(2)
    ]


def identify(datasets: list[EngineData]) -> tuple[list[dict[str, float]], dict[str, float]]:
    """Return the constants of west and east, and those that both share.

    :param datasets: of :data:`~rlexp.studies.plant_data.PROGRAMME`
    """
    controlled = [one for one in datasets if one.controller != "builtin"]
    zones = [dict(ZONE[zone]) | identify_machines(controlled, zone) for zone in range(2)]
    shared = dict(SHARED) | identify_last_stages(controlled)
    for zone in range(2):
        zones[zone] |= identify_zone(controlled, zone, zones, shared)
    managers = identify_manager(datasets, zones, shared)
    return [zone | manager for zone, manager in zip(zones, managers, strict=True)], shared


def main() -> None:
    """Collect data, identify the constants and print them as JSON."""
    datasets = [collect(city, controller, days * task.STEPS_PER_DAY) for city, controller, days in PROGRAMME]
    zones, shared = identify(datasets)
    print(json.dumps({"zone": zones, "shared": shared}, indent=4))


if __name__ == "__main__":
    main()
