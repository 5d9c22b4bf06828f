"""The surrogate beside the engine, step by step: ``python -m rlexp.studies.plant_validation [days]``.

Helsinki, which it was not identified on, under random setpoints and flows and under a controller: how far the zone
temperatures are off after a step that begins where the engine is, and in a run of its own under the same actions.
"""

from __future__ import annotations

import sys

import numpy as np

from rlexp.envs.datacenter import plant, task
from rlexp.envs.datacenter.surrogate import constants_for, lights_of_year, new_states, outdoor_air
from rlexp.envs.datacenter.weather import Floats, load
from rlexp.studies.plant_data import EngineData, collect
from rlexp.studies.plant_identification import SETTLED

CITY, SEED = "helsinki", 7
CONTROLLERS = ("excitation", "pi_fan", "constant")


def misses(one: EngineData, *, restarted: bool) -> Floats:
    """Return by how much the surrogate's zone temperatures are off, west and east, ``(n, 2)``.

    :param one: what the engine did
    :param restarted: every step begins at the engine's temperatures; the masses, which nobody sees, are the surrogate's
    """
    weather = load(one.city)
    zones, shared = constants_for(weather)
    air, lights = outdoor_air(weather), lights_of_year()
    loads = task.LOADS[np.arange(len(one.actions)) // task.STEPS_PER_HOUR % 24]
    state, shown = new_states(1)[0], np.empty(5)
    found = np.empty_like(one.temperatures[1:])
    for step, a in enumerate(one.actions):
        if restarted:
            state[:, plant.AIR] = one.temperatures[step]
        plant.advance(state, zones, shared, air, loads, lights, step, step, a[0], a[1], a[2], a[3], shown)
        found[step] = shown[1:3] - one.temperatures[step + 1]
    return found[SETTLED:]


def main() -> None:
    """Run the engine and print the errors."""
    days = int(sys.argv[1]) if len(sys.argv) > 1 else task.DAYS
    print(f"{CITY}, {days} days: zone temperatures, surrogate minus engine, west/east")
    for controller in CONTROLLERS:
        one = collect(CITY, controller, days * task.STEPS_PER_DAY, SEED)
        step, free = misses(one, restarted=True), misses(one, restarted=False)
        parts = [
            f"r.m.s. after a step {_pair(_rms(step))} K",
            f"beyond 3 K {_pair(100 * (abs(step) > 3).mean(axis=0))} %",
            f"r.m.s. of a free run {_pair(_rms(free))} K",
            f"temperatures vary by {_pair(one.temperatures[SETTLED:].std(axis=0))} K",
        ]
        print(f"{controller}: " + ", ".join(parts), flush=True)


def _rms(errors: Floats) -> Floats:
    return np.asarray(np.sqrt((errors**2).mean(axis=0)))


def _pair(values: Floats) -> str:
    return f"{values[0]:.2f}/{values[1]:.2f}"


if __name__ == "__main__":
    main()
