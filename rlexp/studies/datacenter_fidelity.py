"""The data centre beside its reference, and the surrogate beside the engine: reference controllers over a year.

The reference figures are those of the same building on the same engine, measured independently before this environment
was written; 115.4 kW for the built-in controllers is also within 1 % of the figure that Biemann et al. 2021 publish for
Copenhagen. The city is one that the surrogate was not fitted to.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from rlexp.envs.datacenter import plant, task
from rlexp.envs.datacenter.env import DataCenterEnv
from rlexp.envs.datacenter.surrogate import constants_for, lights_of_year, new_states, outdoor_air
from rlexp.envs.datacenter.weather import load
from rlexp.studies.plant_data import Excitation

CITY = "helsinki"
CONTROLLERS = ("builtin", "pi_fan", "schedule_aware", "constant", "excitation", "random")
JUDGED = CONTROLLERS[:-1]
"""Controllers on which the surrogate must agree with the engine; under uniform actions zones reach 80 degrees."""


class Reference(NamedTuple):
    """A figure to meet, and by how much it may be missed, as a share or absolutely."""

    value: float
    share: float = 0.0
    margin: float = 0.0


REFERENCE_FIGURES: dict[str, dict[str, Reference]] = {
    "builtin": {
        "power_kw": Reference(115.42, share=0.01),
        "comfort_west": Reference(1.0, margin=1e-9),
        "comfort_east": Reference(1.0, margin=1e-9),
        "step_reward": Reference(0.693, share=0.03),
    },
    "pi_fan": {"power_kw": Reference(86.33, share=0.03), "step_reward": Reference(0.856, margin=0.01)},
    "schedule_aware": {
        "power_kw": Reference(86.32, share=0.03),
        "step_reward": Reference(1.087, margin=0.01),
    },
}
"""Helsinki, whole year."""
POWER_SHARE, REWARD_MARGIN = 0.02, 0.05
STEPS_PER_SECOND = 50_000


def run_year(controller: str, backend: str, city: str = CITY, days: int = task.DAYS) -> dict[str, float]:
    """Return a year's means: the numbers of the last ``info``, powers in kW, comfort as shares of the time.

    :param controller: a reference controller; ``random`` for uniform actions, ``excitation`` for random setpoints
        and flows that are held for up to five hours, half of the flows following a temperature
    :param backend: ``engine`` or ``surrogate``
    :param city: name of a weather file
    :param days: simulated days, from the first of January
    """
    env = DataCenterEnv(backend=backend, weather=city, weather_noise=0.0, days=days)
    rng = np.random.default_rng(0)
    held = Excitation(seed=7)
    try:
        env.reset(seed=0)
        over, info = False, dict[str, Any]()
        action: np.ndarray[Any, Any] | None
        while not over:
            if controller == "random":
                action = rng.uniform(-1.0, 1.0, 4).astype(np.float32)
            elif controller == "excitation":
                action = env.scaled_action(*held.act(env.values, 0))
            else:
                action = env.controller_action(controller)
            _, _, _, over, info = env.step(action)
    finally:
        env.close()
    return {key: float(value) for key, value in info.items() if key != "period"}


def speed(steps: int = task.STEPS_PER_YEAR) -> dict[str, float]:
    """Return steps per second of processor time: of the compiled model alone, and of the gymnasium environment on it.

    :param steps: how many are timed
    """
    weather = load(CITY)
    zones, shared = constants_for(weather)
    rng = np.random.default_rng(0)
    actions = np.column_stack([rng.uniform(10, 40, (steps, 2)), rng.uniform(1.75, 7, (steps, 2))])[:, None]
    out = np.empty((steps, 1, 5))
    loads = task.LOADS[np.arange(steps) // task.STEPS_PER_HOUR % 24]
    arrays = (zones, shared, outdoor_air(weather), loads, lights_of_year())
    plant.simulate(new_states(1), *arrays, actions[:2], out[:2])
    began = time.process_time()
    plant.simulate(new_states(1), *arrays, actions, out)
    model = steps / (time.process_time() - began)
    env = DataCenterEnv(backend="surrogate", weather=CITY, weather_noise=0.0)
    env.reset(seed=0)
    moves = rng.uniform(-1, 1, (steps, 4)).astype(np.float32)
    began = time.process_time()
    for move in moves:
        env.step(move)
    return {"model": model, "gymnasium": steps / (time.process_time() - began)}


def measure(city: str = CITY, days: int = task.DAYS, processes: int = 1) -> dict[str, Any]:
    """Run every controller on engine and surrogate and compare.

    :param city: name of a weather file; the references are those of Helsinki and a whole year
    :param days: simulated days, from the first of January
    :param processes: engines that run side by side
    :return: JSON-ready: ``years`` by backend and controller, ``speed``, and ``lines``, each with ``row``, ``quantity``,
        ``measured``, ``reference``, ``lowest``, ``highest`` and ``inside``
    """
    load(city)
    with ThreadPoolExecutor(max_workers=max(processes, 1)) as pool:
        engine = dict(
            zip(
                CONTROLLERS,
                pool.map(lambda name: run_year(name, "engine", city, days), CONTROLLERS),
                strict=True,
            )
        )
    surrogate = {name: run_year(name, "surrogate", city, days) for name in CONTROLLERS}
    lines = []
    if city == CITY and days == task.DAYS:
        for name, figures in REFERENCE_FIGURES.items():
            for quantity, wanted in figures.items():
                margin = wanted.margin + wanted.share * abs(wanted.value)
                lines.append(_line(f"engine, {name}", quantity, engine[name][quantity], wanted.value, margin))
    for name in JUDGED:
        power, reward = engine[name]["power_kw"], engine[name]["step_reward"]
        row = f"surrogate, {name}"
        lines.append(_line(row, "power_kw", surrogate[name]["power_kw"], power, POWER_SHARE * power))
        lines.append(_line(row, "step_reward", surrogate[name]["step_reward"], reward, REWARD_MARGIN))
    rates = speed()
    for kind, rate in rates.items():
        line = _line("surrogate", f"steps/s, {kind}", rate, STEPS_PER_SECOND, 0.0)
        lines.append(line | {"highest": None, "inside": rate >= STEPS_PER_SECOND})
    return {
        "city": city,
        "days": days,
        "years": {"engine": engine, "surrogate": surrogate},
        "speed": rates,
        "lines": lines,
    }


def _line(row: str, quantity: str, measured: float, reference: float, margin: float) -> dict[str, Any]:
    return {
        "row": row,
        "quantity": quantity,
        "measured": measured,
        "reference": reference,
        "lowest": reference - margin,
        "highest": reference + margin,
        "inside": reference - margin <= measured <= reference + margin,
    }
