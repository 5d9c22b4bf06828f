"""The plant as the surrogate sees it, compiled: servers, cooling chains, zones; 15 minutes in one to fifteen sub-steps.

West and east are alike in everything but the last stage of cooling: a DX coil with its own compressor in the west,
chilled water from an electric chiller with a cooling tower in the east. What is written in the building model is taken
from there; what the engine sizes or computes by finite volumes is identified
(:mod:`rlexp.studies.plant_identification`), see :mod:`rlexp.envs.datacenter.constants` for the order of the constants.

Time passes as in the engine, whose delays an agent feels. The servers' heat follows from the air at the beginning of
the 15 minutes. These are tried as one sub-step first, in which the mixing box still follows the last setpoint; where no
temperature moves by more than 0.3 K that is all, otherwise they are done again in shorter ones, with the new setpoint.
Air passes a plenum in one sub-step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlexp.buffers.jit import compiled
from rlexp.envs.datacenter.psychrometrics import (
    HEAT_OF_AIR,
    HEAT_OF_MOISTURE,
    HEAT_OF_VAPOUR,
    humidity_ratio,
    saturation_humidity,
    wet_bulb,
)

SECONDS = 900.0
MOST_SUB_STEPS = 15
_LARGEST_MOVE = 0.3  # K, in a sub-step

# State of a zone; MIXING: the setpoint that the mixing box follows.
AIR, FAST, SLOW, FLOOR, HUMIDITY, INLET, MIXING, N_STATE = range(8)
# Constants of a zone; the names are those of rlexp.envs.datacenter.constants.ZONE.
(
    DESIGN_POWER, AIR_CAPACITY, FAST_COUPLING, FAST_CAPACITY, SLOW_COUPLING, SLOW_CAPACITY, OUTDOOR_COUPLING, GAIN,
    FLOOR_COUPLING, PLENUM_OUTDOOR, FLOOR_GROUND, FLOOR_CAPACITY, AIR_MASS, LARGEST_FLOW,
    FAN_0, FAN_1, FAN_2, FAN_3, ECONOMISER_LIMIT, DIRECT_LIMIT, INDIRECT_WET_FROM, INDIRECT_DRY_UNTIL,
    INDIRECT_DRY, INDIRECT_WET, SECONDARY_FAN, SECONDARY_PUMP, MANAGER_GAIN, MANAGER_OFFSET,
    MIXING_OFFSET, N_ZONE,
) = range(30)  # fmt: skip
# Constants that both share: rlexp.envs.datacenter.constants.SHARED.
(
    DX_0, DX_WET_BULB, DX_OUTDOOR, DX_OUTDOOR_2, DX_APPARATUS, DX_LARGEST, CHILLER_0, CHILLER_WET_BULB,
    CHILLED_PUMP, CONDENSER_PUMP, TOWER_FAN, TOWER_0, TOWER_WET_BULB, TOWER_SETPOINT, TOWER_LOAD, N_SHARED,
) = range(16)  # fmt: skip

_FAN_HEAT = 0.9  # of the fan's power, the motor being outside of the air
_DIRECT_EFFECTIVENESS = 0.7
_DIRECT_PUMP = 30.0
_DIRECT_FROM = 16.0
_WET_UNTIL = 24.0
_ECONOMISER_FROM = -20.0
_ECONOMISER_DEW_POINT = 13.5
_THERMOSTAT = 23.0
_COLDEST_MANAGED, _WARMEST_MANAGED = 12.0, 18.0
_CHILLED_WATER = 7.0
_BASIN_HEATER, _BASIN_FROM = 450.0, 4.5
_LEAST_COOLING = 20.0  # W; below it the plant stands still

# The indirect cooler's secondary fan: effectiveness and power over its flow (tables of the building model).
_FLOW_RATIOS = np.array(
    [0.0, 0.156016, 0.22497, 0.269625, 0.33699, 0.453044, 0.553876, 0.732741, 0.899289, 1.047474, 1.104174]
)
_EFFECTS = np.array(
    [0.0, 0.251901, 0.272634, 0.326355, 0.406442, 0.538618, 0.643204, 0.798193, 0.907534, 0.98913, 1.0]
)
_FAN_SHARES = np.array([0.0, 0.0101, 0.0227, 0.0352, 0.0626, 0.1323, 0.2208, 0.4487, 0.7637, 1.0, 1.0])


@compiled
def server_power(load: float, inlet: float, design: float) -> Any:
    """Return the power of a zone's servers in watts: processors, their fans, losses of the power supply.

    ``CPU = 0.6 P [x - 1 + 0.06667 T]+``, ``fans = 0.4 P [0.9 x - 1.4 + 0.1 T]+``, a tenth of both on top.

    :param load: x, processor load
    :param inlet: T, temperature of the air that they breathe
    :param design: P, watts
    """
    processors = 0.6 * max(0.0, load - 1.0 + 0.06667 * inlet)
    fans = 0.4 * max(0.0, 0.9 * load - 1.4 + 0.1 * inlet)
    return 1.1 * design * (processors + fans)


@compiled
def _interpolate(x: float, xs: Any, ys: Any) -> Any:
    if x <= xs[0]:
        return ys[0]
    for k in range(1, xs.size):
        if x < xs[k]:
            return ys[k - 1] + (ys[k] - ys[k - 1]) * (x - xs[k - 1]) / (xs[k] - xs[k - 1])
    return ys[-1]


@compiled
def _convection(coupling: float, difference: float) -> Any:
    """Return by how many watts per kelvin a surface and air exchange heat: natural convection."""
    return coupling * max(abs(difference), 0.1) ** (1.0 / 3.0)


@compiled
def _zone_step(
    s: Any, c: Any, supply: float, flow: float, outdoor: float, ground: float, heat: float, seconds: float
) -> None:
    """Advance a zone by a sub-step: the plenum that the supply passes through, the air, and two masses in it.

    :param s: state, changed in place
    :param c: constants of the zone
    :param supply: temperature of the air that leaves the cooling chain
    :param flow: kg/s
    :param heat: of servers and lights, watts
    :param seconds: how long it is
    """
    air = flow * (HEAT_OF_AIR + HEAT_OF_MOISTURE * s[HUMIDITY])
    surfaces = _convection(c[FAST_COUPLING], s[FAST] - s[AIR])
    inertia = c[AIR_CAPACITY] / seconds
    s[AIR] = (
        inertia * s[AIR]
        + heat
        + c[GAIN]
        + air * s[INLET]
        + surfaces * s[FAST]
        + c[SLOW_COUPLING] * s[SLOW]
        + c[OUTDOOR_COUPLING] * outdoor
    ) / (inertia + air + surfaces + c[SLOW_COUPLING] + c[OUTDOOR_COUPLING])
    inertia = c[FAST_CAPACITY] / seconds
    s[FAST] = (inertia * s[FAST] + surfaces * s[AIR]) / (inertia + surfaces)
    inertia = c[SLOW_CAPACITY] / seconds
    s[SLOW] = (inertia * s[SLOW] + c[SLOW_COUPLING] * s[AIR]) / (inertia + c[SLOW_COUPLING])
    # The plenum under the raised floor, between the slab on the ground and the supply air.
    plenum = _convection(c[FLOOR_COUPLING], s[FLOOR] - s[INLET])
    s[INLET] = (air * supply + plenum * s[FLOOR] + c[PLENUM_OUTDOOR] * outdoor) / (
        air + plenum + c[PLENUM_OUTDOOR]
    )
    inertia = c[FLOOR_CAPACITY] / seconds
    s[FLOOR] = (inertia * s[FLOOR] + plenum * s[INLET] + c[FLOOR_GROUND] * ground) / (
        inertia + plenum + c[FLOOR_GROUND]
    )


@compiled
def _managed(s: Any, c: Any, flow: float, outdoor: float, heat: float) -> Any:
    """Supply temperature that the building's own manager asks for: what brings the zone to 23 degrees."""
    heat += (
        c[GAIN]
        + _convection(c[FAST_COUPLING], s[FAST] - s[AIR]) * (s[FAST] - s[AIR])
        + c[SLOW_COUPLING] * (s[SLOW] - s[AIR])
    )
    heat += c[OUTDOOR_COUPLING] * (outdoor - s[AIR]) + c[MANAGER_GAIN] * (s[AIR] - _THERMOSTAT)
    wanted = s[AIR] - heat / (HEAT_OF_AIR * flow) + c[MANAGER_OFFSET]
    return min(max(wanted, _COLDEST_MANAGED), _WARMEST_MANAGED)


@compiled
def _chain(
    s: Any,
    c: Any,
    setpoint: float,
    followed: float,
    flow: float,
    outdoor: float,
    outdoor_humidity: float,
    outdoor_wet_bulb: float,
    pressure: float,
) -> Any:
    """Take return air through mixing box, fan, direct and indirect evaporative cooler.

    :param followed: setpoint that the mixing box follows
    :return: temperature and humidity before the last stage of cooling, and watts
    """
    fan = c[FAN_0] + flow * (c[FAN_1] + flow * (c[FAN_2] + flow * c[FAN_3]))
    rise = _FAN_HEAT * fan / (HEAT_OF_AIR * flow)
    share = 0.0
    dry = outdoor_humidity <= saturation_humidity(_ECONOMISER_DEW_POINT, pressure)
    if dry and _ECONOMISER_FROM <= outdoor <= c[ECONOMISER_LIMIT]:
        aim = followed - rise
        if outdoor >= aim:
            share = 1.0 if outdoor < s[AIR] else 0.0
        elif s[AIR] > outdoor:
            share = min(max((s[AIR] - aim) / (s[AIR] - outdoor), 0.0), 1.0)
    t = s[AIR] + share * (outdoor - s[AIR]) + rise
    w = s[HUMIDITY] + share * (outdoor_humidity - s[HUMIDITY])
    power = fan
    if t > setpoint and t >= _DIRECT_FROM:
        wet = wet_bulb(t, w, pressure)
        if wet <= c[DIRECT_LIMIT]:
            coldest = t - _DIRECT_EFFECTIVENESS * (t - wet)
            after = max(setpoint, coldest)
            if t - coldest > 1e-6:
                power += _DIRECT_PUMP * (t - after) / (t - coldest)
            w += 1006.0 * (t - after) / HEAT_OF_VAPOUR
            t = after
    if t > setpoint:
        watered = c[INDIRECT_WET_FROM] <= outdoor and outdoor_wet_bulb <= _WET_UNTIL
        if watered:
            coldest = t - c[INDIRECT_WET] * (t - outdoor_wet_bulb)
        elif outdoor <= c[INDIRECT_DRY_UNTIL]:
            coldest = t - c[INDIRECT_DRY] * (t - outdoor)
        else:
            coldest = t
        if coldest < t:
            after = max(setpoint, coldest)
            effort = (t - after) / (t - coldest)
            ratio = _interpolate(effort, _EFFECTS, _FLOW_RATIOS)
            power += c[SECONDARY_FAN] * _interpolate(ratio, _FLOW_RATIOS, _FAN_SHARES)
            if watered:
                power += c[SECONDARY_PUMP] * (1.0 if ratio > 0.44 else 0.4)
            t = after
    return t, w, power


@compiled
def _expansion(
    t: float, w: float, setpoint: float, flow: float, outdoor: float, pressure: float, g: Any
) -> Any:
    """West: the DX coil. Returns supply temperature, humidity and watts."""
    if t <= setpoint + 1e-3:
        return t, w, 0.0
    wet = wet_bulb(t, w, pressure)
    apparatus = min(g[DX_APPARATUS], setpoint - 0.5)
    line = (w - saturation_humidity(apparatus, pressure)) / (t - apparatus)
    latent = HEAT_OF_VAPOUR * max(line, 0.0)
    per_kelvin = flow * (HEAT_OF_AIR * 1.01 + latent)
    after = max(setpoint, t - g[DX_LARGEST] / per_kelvin)
    cooling = per_kelvin * (t - after)
    ratio = g[DX_0] + g[DX_WET_BULB] * wet + outdoor * (g[DX_OUTDOOR] + g[DX_OUTDOOR_2] * outdoor)
    return after, w - max(line, 0.0) * (t - after), cooling * ratio


@compiled
def _chilled_water(
    t: float,
    w: float,
    setpoint: float,
    flow: float,
    outdoor: float,
    outdoor_wet_bulb: float,
    pressure: float,
    g: Any,
) -> Any:
    """East: chilled water, chiller and tower. Returns supply temperature, humidity and watts."""
    cooling = 0.0
    after, humidity = t, w
    if t > setpoint:
        humidity = min(w, 0.99 * saturation_humidity(setpoint, pressure))
        cooling = flow * (HEAT_OF_AIR * 1.01 * (t - setpoint) + HEAT_OF_VAPOUR * (w - humidity))
        after = setpoint
    if cooling < _LEAST_COOLING:
        return after, humidity, _BASIN_HEATER * max(0.0, _BASIN_FROM - outdoor)
    power = cooling * (g[CHILLER_0] + g[CHILLER_WET_BULB] * outdoor_wet_bulb)
    power += cooling * g[CHILLED_PUMP] / max(setpoint - _CHILLED_WATER, 0.5) + g[CONDENSER_PUMP]
    odds = g[TOWER_0] + g[TOWER_WET_BULB] * outdoor_wet_bulb + g[TOWER_SETPOINT] * setpoint
    odds += g[TOWER_LOAD] * cooling
    power += g[TOWER_FAN] / (1.0 + math.exp(-odds))  # it runs fully or not at all; its mean
    return after, humidity, power


@compiled
def step(
    s: Any,
    c: Any,
    g: Any,
    outdoor: float,
    outdoor_humidity: float,
    outdoor_wet_bulb: float,
    pressure: float,
    ground: float,
    load: float,
    lights: float,
    west_setpoint: float,
    east_setpoint: float,
    west_flow: float,
    east_flow: float,
) -> Any:
    """Advance both zones by 15 minutes.

    :param s: states, ``(2, N_STATE)``, changed in place
    :param c: constants of the zones, ``(2, N_ZONE)``
    :param g: constants that both share, ``(N_SHARED,)``
    :param outdoor_humidity: kg/kg
    :param load: processor load of the servers
    :param lights: watts per zone
    :param west_setpoint: NaN: the building's own controllers; likewise the flows
    :return: power of servers and lights, and of cooling, in watts, as the engine shows them: at the end of the step
    """
    before = s.copy()
    heats = (
        server_power(load, 0.9 * s[0, INLET] + 0.1 * s[0, AIR], c[0, DESIGN_POWER]) + lights,
        server_power(load, 0.9 * s[1, INLET] + 0.1 * s[1, AIR], c[1, DESIGN_POWER]) + lights,
    )
    n, cooling = 1, 0.0
    while True:
        seconds = SECONDS / n
        for _ in range(n):  # the power shown is that of the last one
            cooling = 0.0
            for z in range(2):
                wanted, flow = (west_setpoint, west_flow) if z == 0 else (east_setpoint, east_flow)
                flow = c[z, LARGEST_FLOW] if math.isnan(flow) else min(flow, c[z, LARGEST_FLOW])
                setpoint, followed = wanted, s[z, MIXING] if n == 1 else wanted
                if math.isnan(wanted):
                    setpoint = _managed(s[z], c[z], flow, outdoor, heats[z])
                    followed = setpoint + c[z, MIXING_OFFSET]
                t, w, power = _chain(
                    s[z],
                    c[z],
                    setpoint,
                    followed,
                    flow,
                    outdoor,
                    outdoor_humidity,
                    outdoor_wet_bulb,
                    pressure,
                )
                cooling += power
                if z == 0:
                    t, w, power = _expansion(t, w, setpoint, flow, outdoor, pressure, g)
                else:
                    t, w, power = _chilled_water(t, w, setpoint, flow, outdoor, outdoor_wet_bulb, pressure, g)
                cooling += power
                _zone_step(s[z], c[z], t, flow, outdoor, ground, heats[z], seconds)
                s[z, HUMIDITY] += (1.0 - math.exp(-flow * seconds / c[z, AIR_MASS])) * (w - s[z, HUMIDITY])
        if n > 1:
            break
        move = 0.0
        for z in range(2):
            move = max(move, abs(s[z, AIR] - before[z, AIR]), abs(s[z, INLET] - before[z, INLET]))
        if move <= _LARGEST_MOVE:
            break
        n = min(int(move / _LARGEST_MOVE) + 1, MOST_SUB_STEPS)
        s[:] = before
    s[0, MIXING], s[1, MIXING] = west_setpoint, east_setpoint
    return heats[0] + heats[1], cooling


@compiled
def advance(
    s: Any,
    c: Any,
    g: Any,
    air: Any,
    loads: Any,
    lights: Any,
    now: int,
    seen: int,
    west_setpoint: float,
    east_setpoint: float,
    west_flow: float,
    east_flow: float,
    out: Any,
) -> Any:
    """Advance by one step of a year.

    :param air: of every step outdoor temperature, humidity ratio, wet bulb, pressure, and temperature of the ground,
        ``(n, 5)``
    :param loads: processor load of every step; ``lights`` likewise, in watts
    :param now: the step; ``seen``: the one whose outdoor temperature is observed after it
    :param out: receives outdoor, west and east temperature, servers, cooling; ``(5,)``
    """
    servers, cooling = step(
        s, c, g, air[now, 0], air[now, 1], air[now, 2], air[now, 3], air[now, 4], loads[now], lights[now],
        west_setpoint, east_setpoint, west_flow, east_flow,
    )  # fmt: skip
    out[0], out[1], out[2], out[3], out[4] = air[seen, 0], s[0, AIR], s[1, AIR], servers, cooling


@compiled
def simulate(s: Any, c: Any, g: Any, air: Any, loads: Any, lights: Any, actions: Any, out: Any) -> None:
    """Advance many plants side by side through many steps of given actions.

    :param s: states, ``(n_plants, 2, N_STATE)``, changed in place
    :param actions: setpoints and flows, ``(n_steps, n_plants, 4)``
    :param out: receives what :func:`advance` returns, ``(n_steps, n_plants, 5)``
    """
    for now in range(actions.shape[0]):
        for plant in range(actions.shape[1]):
            a = actions[now, plant]
            seen = min(now + 1, air.shape[0] - 1)
            advance(s[plant], c, g, air, loads, lights, now, seen, a[0], a[1], a[2], a[3], out[now, plant])


@compiled
def outdoor_air(dry_bulb: Any, relative_humidity: Any, pressure: Any) -> Any:
    """Return temperature, humidity ratio, wet bulb and pressure of outdoor air, ``(n, 4)``."""
    found = np.empty((dry_bulb.size, 4))
    for k in range(dry_bulb.size):
        humidity = humidity_ratio(dry_bulb[k], relative_humidity[k], pressure[k])
        found[k, 0], found[k, 1], found[k, 3] = dry_bulb[k], humidity, pressure[k]
        found[k, 2] = wet_bulb(dry_bulb[k], humidity, pressure[k])
    return found
