"""The surrogate beside the engine, and the reference controllers on both."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rlexp.envs.datacenter import plant, psychrometrics, surrogate, task
from rlexp.envs.datacenter.constants import SHARED, ZONE
from rlexp.envs.datacenter.controllers import ScheduleAware
from rlexp.envs.datacenter.engine import Engine
from rlexp.envs.datacenter.weather import load
from rlexp.studies import datacenter_fidelity, plant_data, plant_validation

pytestmark = pytest.mark.usefixtures("engine_installed")


def test_constants_stand_where_the_plant_reads_them() -> None:
    names = [name.lower() for name in vars(plant) if name.isupper() and not name.startswith("_")]
    places = {name: getattr(plant, name.upper()) for name in names}
    for zone in ZONE:
        assert [places[name] for name in zone] == list(range(plant.N_ZONE))
    assert [places[name] for name in SHARED] == list(range(plant.N_SHARED))


def test_servers_by_hand() -> None:
    # 0.6 x (0.06667 x 15) + 0.4 x (0.9 - 1.4 + 1.5), a tenth on top: the design load at 15 degrees.
    assert plant.server_power(1.0, 15.0, 1000.0) == pytest.approx(1.1 * (0.6 * 1.00005 + 0.4) * 1000)
    assert plant.server_power(0.5, 5.0, 1000.0) == 0.0, "neither processors nor fans take less than nothing"
    assert plant.server_power(1.0, 20.0, 1.0) > plant.server_power(1.0, 19.0, 1.0), "warm air costs power"


def test_moist_air_by_tables() -> None:
    assert psychrometrics.saturation_pressure(20.0) == pytest.approx(2338.8, rel=1e-3)
    assert psychrometrics.saturation_pressure(-10.0) == pytest.approx(259.9, rel=1e-3)
    humidity = psychrometrics.humidity_ratio(30.0, 50.0, 101_325.0)
    assert humidity == pytest.approx(0.01332, rel=5e-3)
    assert psychrometrics.wet_bulb(30.0, humidity, 101_325.0) == pytest.approx(22.0, abs=0.15)
    assert psychrometrics.wet_bulb(10.0, psychrometrics.saturation_humidity(10.0, 1e5), 1e5) == pytest.approx(
        10.0, abs=0.1
    )


def test_side_by_side_is_one_after_the_other() -> None:
    weather = load("helsinki")
    zones, shared = surrogate.constants_for(weather)
    rng = np.random.default_rng(0)
    actions = np.concatenate([rng.uniform(10, 40, (50, 3, 2)), rng.uniform(1.75, 7, (50, 3, 2))], axis=2)
    out = np.empty((50, 3, 5))
    arrays = (zones, shared, surrogate.outdoor_air(weather), task.LOADS[np.arange(50) // 4 % 24])
    plant.simulate(surrogate.new_states(3), *arrays, surrogate.lights_of_year(), actions, out)
    for k in range(3):
        alone = np.empty((50, 1, 5))
        plant.simulate(
            surrogate.new_states(1), *arrays, surrogate.lights_of_year(), actions[:, k : k + 1], alone
        )
        assert np.array_equal(alone[:, 0], out[:, k])


def test_reference_controllers_on_the_surrogate() -> None:
    years = {
        name: datacenter_fidelity.run_year(name, "surrogate") for name in datacenter_fidelity.CONTROLLERS
    }
    rewards = [years[name]["step_reward"] for name in ("random", "builtin", "pi_fan", "schedule_aware")]
    assert rewards == sorted(rewards)
    for name in ("builtin", "pi_fan", "schedule_aware"):  # the engine's figures; the report measures all
        wanted = datacenter_fidelity.REFERENCE_FIGURES[name]
        assert years[name]["power_kw"] == pytest.approx(
            wanted["power_kw"].value, rel=datacenter_fidelity.POWER_SHARE
        )
        assert years[name]["step_reward"] == pytest.approx(
            wanted["step_reward"].value, abs=datacenter_fidelity.REWARD_MARGIN
        )
    assert years["schedule_aware"]["comfort"] > 0.99 > years["pi_fan"]["comfort"]


def _steps(backend: Any, action: tuple[float, float], n: int) -> Any:
    return np.array([backend.step((action[0],) * 2, (action[1],) * 2)[1:3] for _ in range(n)])


def test_a_changed_setpoint_arrives_when_it_does_in_the_engine() -> None:
    """Warmer: a step later, since only the mixing box warms, and it follows late; colder: within the step."""
    weather = load("helsinki")
    moved = {}
    for backend in (Engine(), surrogate.Surrogate()):
        backend.begin(weather, 96)
        cold, warm, again = (_steps(backend, (setpoint, 4.5), 7) for setpoint in (12.0, 17.0, 12.0))
        moved[backend.name] = warm - cold[-1], again - warm[-1]  # before six, when the load changes
        backend.close()
    warmer, colder = moved["engine"]
    assert np.all(np.abs(warmer[0]) < 0.1) and np.all(colder[0] < -1.5)
    assert moved["surrogate"][0] == pytest.approx(warmer, abs=0.7)
    assert moved["surrogate"][1] == pytest.approx(colder, abs=0.7)


def test_random_setpoints_are_followed() -> None:
    """Twelve days of January; a year of it: ``python -m rlexp.studies.plant_validation``."""
    one = plant_data.collect("helsinki", "excitation", 12 * task.STEPS_PER_DAY, seed=7)
    after_a_step = plant_validation.misses(one, restarted=True)
    assert np.sqrt((after_a_step**2).mean()) < 1.0
    assert np.sqrt((plant_validation.misses(one, restarted=False) ** 2).mean()) < 1.2


def test_humid_air_is_not_let_in() -> None:
    """Both economisers close above a dew point of 13.5 degrees, however cool it is outside."""
    weather = load("helsinki")
    zones, shared = surrogate.constants_for(weather)
    powers = []
    for dew_point in (13.0, 14.0):
        humidity = psychrometrics.saturation_humidity(dew_point, 1e5)
        air = (15.0, humidity, psychrometrics.wet_bulb(15.0, humidity, 1e5), 1e5, 20.0)
        states = surrogate.new_states(1)[0]
        for _ in range(96):
            _, cooling = plant.step(states, zones, shared, *air, 1.0, 0.0, 15.0, 15.0, 5.0, 5.0)
        powers.append(cooling)
    assert powers[1] > 1.3 * powers[0]


@pytest.mark.parametrize("controller", ["builtin", "pi_fan", "constant"])
def test_days_on_engine_and_surrogate(controller: str) -> None:
    engine, model = (
        datacenter_fidelity.run_year(controller, one, "helsinki", 12) for one in ("engine", "surrogate")
    )
    assert model["power_kw"] == pytest.approx(engine["power_kw"], rel=0.03)
    assert model["servers_kw"] == pytest.approx(engine["servers_kw"], rel=0.02)
    assert model["step_reward"] == pytest.approx(engine["step_reward"], abs=0.1)


def test_schedule_aware_learns_a_flow_for_every_load() -> None:
    controller = ScheduleAware(gain=0.0, integral_gain=0.5)
    warm, right = np.array([0.0, 25.5, 23.5, 0.0, 0.0]), np.array([0.0, 23.5, 23.5, 0.0, 0.0])
    step = 24  # six o'clock: the load goes from 0.5 to 0.75, and 25.5 degrees are what 0.5 left behind
    assert controller.act(warm, step) == ((10.0, 10.0), (3.5, 3.5))
    assert controller.act(right, 96) == ((10.0, 10.0), (4.5, 3.5)), "at midnight 0.5 comes again"
    assert math.isclose(controller.act(right, 97)[1][0], 4.5)
