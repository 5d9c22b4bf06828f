"""The engine: real days of it, and everything that can go wrong with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlexp.envs.datacenter import building_model
from rlexp.envs.datacenter.engine import Engine, EngineError
from rlexp.envs.datacenter.weather import load, perturbed, quarter_hours

pytestmark = pytest.mark.usefixtures("engine_installed")


def _own(engine: Engine, steps: int) -> Any:
    return np.array([engine.own_controllers() for _ in range(steps)])


def test_two_days_side_by_side(temporary: Path) -> None:
    weather = load("helsinki")
    year = perturbed(weather, 2.0, np.random.default_rng(0))
    one, other = Engine(), Engine()
    first = one.begin(weather, 192)
    second = other.begin(year, 192)
    assert first[0] == pytest.approx(quarter_hours(weather.dry_bulb)[0])
    assert second[0] == pytest.approx(quarter_hours(year.dry_bulb)[0])
    assert list(temporary.iterdir()) == [], "an engine's files are unlinked as soon as they are open"
    days = _own(one, 192), _own(other, 192)
    # The building's own controllers hold 23 to 24.6 degrees at 0.45 to 1.1 of the design load.
    for day in days:
        assert np.all((day[:, 1:3] > 22.5) & (day[:, 1:3] < 25)) and 60e3 < day[:, 3].mean() < 120e3
    assert not np.array_equal(*days)
    one.begin(weather, 192)
    assert np.array_equal(_own(one, 192), days[0]), "the same year again, in the same object"
    one.close()
    other.close()
    assert list(temporary.iterdir()) == []


def test_actions_reach_the_plant(temporary: Path) -> None:
    engine = Engine(watched=[("System Node Mass Flow Rate", "West Air Loop Outlet Node")])
    engine.begin(load("stockholm"), 96)
    held = [engine.step((10.0, 10.0), (2.0, 5.0)) for _ in range(8)]
    assert held[-1][5] == pytest.approx(2.0), "west flow"
    assert held[-1][1] > held[-1][2] + 2, "the east zone, with more air of the same temperature, is colder"
    warm = [engine.step((10.0, 10.0), (5.0, 2.0)) for _ in range(8)]
    assert warm[-1][1] < warm[-1][2] - 2
    engine.close()


def test_the_building_does_not_regulate_itself_where_an_agent_acts(temporary: Path) -> None:
    """Biemann et al.'s building: outdoor air is mixed as the agent's setpoint asks for, whatever the zones need."""
    node = "West Zone Mixed Air Node"
    engine = Engine(watched=[("System Node Temperature", node), ("System Node Setpoint Temperature", node)])
    assert engine.begin(load("helsinki"), 96)[0] < 0, "January"
    for setpoint in (30.0, 15.0):
        for _ in range(8):
            values = engine.step((setpoint, setpoint), (5.0, 5.0))
        assert values[5] == pytest.approx(values[6], abs=0.1) and setpoint - 0.5 < values[6] < setpoint
    for _ in range(12):
        values = engine.step((40.0, 40.0), (7.0, 7.0))
    assert np.all(values[1:3] > 45), "no fan makes up for it"
    engine.close()


def test_a_year_does_not_change_hands(temporary: Path) -> None:
    engine = Engine()
    for first, then in ((engine.own_controllers, False), (lambda: engine.step((10, 10), (4, 4)), True)):
        engine.begin(load("helsinki"), 96)
        first()
        with pytest.raises(EngineError, match="as a whole or not at all"):
            engine.own_controllers() if then else engine.step((10, 10), (4, 4))
    engine.close()


def _crash(engine: Engine) -> None:
    assert engine._process is not None
    os.kill(engine._process.pid, signal.SIGSEGV)
    engine._process.wait()


def _hang(engine: Engine) -> None:
    assert engine._process is not None
    engine.timeout_s = 0.3
    os.kill(engine._process.pid, signal.SIGSTOP)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (_crash, r"killed by signal 11 at step \d of 960 \(day 1, 00:\d\d\)"),
        (_hang, r"does not answer for 0.3 s at step 4 of 960 \(day 1, 00:45\)"),
    ],
)
def test_a_broken_engine_says_so(temporary: Path, harm: Callable[[Engine], None], message: str) -> None:
    engine = Engine()
    engine.begin(load("helsinki"), 960)
    _own(engine, 3)
    harm(engine)
    with pytest.raises(EngineError, match=message):
        engine.own_controllers()
    with pytest.raises(EngineError, match="no year has begun"):
        engine.own_controllers()
    assert list(temporary.iterdir()) == []
    engine.timeout_s = 300.0
    assert engine.begin(load("helsinki"), 960)[3] > 1000, "another year can begin"
    engine.close()


def test_what_the_engine_complains_of_is_passed_on(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = building_model.building()
    del broken["Zone"]["West Zone"]
    monkeypatch.setattr(building_model, "building", lambda _: broken)
    with pytest.raises(EngineError, match=r"stopped with exit code 1 while it starts: .*Errors found"):
        Engine().begin(load("helsinki"), 96)
    assert list(temporary.iterdir()) == []


def test_no_server_load_is_noticed(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = building_model.building()
    for servers in idle[building_model.SERVERS].values():  # the name before version 24: the engine only warns
        servers["watts_per_zone_floor_area"] = servers.pop("watts_per_floor_area")
    monkeypatch.setattr(building_model, "building", lambda _: idle)
    with pytest.raises(EngineError, match="no server load: 28 W"):
        Engine().begin(load("helsinki"), 96)


def test_only_the_known_building_is_patched() -> None:
    patched = building_model.building()
    assert (
        patched[building_model.SERVERS][building_model.EAST_SERVERS]["air_flow_calculation_method"]
        == "FlowFromSystem"
    )
    assert not any(key.startswith("Output") for key in patched)
    assert building_model.MANAGERS not in patched
    assert len(building_model.building(self_regulating=True)[building_model.MANAGERS]) == 2
    with pytest.raises(building_model.ModelError, match="not the one that is known here"):
        building_model.patched({**patched, "Version": {}})


_ORPHAN = """
import sys, time
from rlexp.envs.datacenter.engine import Engine
from rlexp.envs.datacenter.weather import load
engine = Engine()
if sys.argv[1] == "stepping":
    engine.begin(load("helsinki"), 960)
else:
    engine._release_files = lambda: None  # killed before that
    engine.begin(load("helsinki"), 960)
print(engine._process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("when", ["stepping", "starting"])
def test_nothing_survives_a_killed_training(temporary: Path, when: str) -> None:
    arguments = [sys.executable, "-c", _ORPHAN, when]
    training = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert training.stdout is not None
    worker = int(training.stdout.readline())
    assert len(list(temporary.iterdir())) == (when == "starting")
    training.kill()
    training.wait()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and (Path(f"/proc/{worker}").exists() or list(temporary.iterdir())):
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists() and list(temporary.iterdir()) == []
