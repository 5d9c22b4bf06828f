"""The process in which the engine runs: one year of the building, 15 minutes per exchange.

Started as a script by :class:`rlexp.envs.datacenter.engine.Engine`, so that an engine that crashes or hangs cannot
take the training with it. It imports nothing of rlexp. Per step it writes one observation, doubles in the engine's
byte order, and reads one action: four doubles, or NaN for the engine's own controllers.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import struct
import sys
import threading
import time
from pathlib import Path
from typing import Any

OBSERVED = (
    ("Site Outdoor Air Drybulb Temperature", "Environment"),
    ("Zone Mean Air Temperature", "West Zone"),
    ("Zone Mean Air Temperature", "East Zone"),
    ("Facility Total Building Electricity Demand Rate", "Whole Building"),
    ("Facility Total HVAC Electricity Demand Rate", "Whole Building"),
)
ZONES = ("West", "East")
SETPOINT_NODES = {
    # After the direct and the indirect evaporative cooler, the DX coil and the chilled-water coil.
    zone: (
        f"{zone} Zone DEC Outlet Node",
        f"{zone} Zone IEC Outlet Node",
        f"{zone} Zone CCoil Air Outlet Node",
        f"{zone} Air Loop Outlet Node",
    )
    for zone in ZONES
}
WARM_UP_SETPOINT = 10.0
_WATCH_SECONDS = 1.0
_WEATHER_RUN_PERIOD = 3
FAILED = 4


def follow_parent(folder: Path, parent: int) -> None:
    """Leave nothing behind when the process that steps the engine dies, however it dies."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


class Year:
    """One run of the engine.

    :param folder: the engine's own folder; whoever steps it deletes it when the first observation arrives, since
        every file in it is open by then
    :param watched: further output variables, ``(name, key)``, that follow the five observations
    :param n_steps: after how many steps the year ends
    """

    def __init__(
        self, folder: Path, watched: list[tuple[str, str]], n_steps: int, source: int, sink: int
    ) -> None:
        from pyenergyplus.api import EnergyPlusAPI

        self.api = EnergyPlusAPI()
        self.exchange = self.api.exchange
        self.folder = folder
        self.state = self.api.state_manager.new_state()
        self.variables = [*OBSERVED, *watched]
        self.handles: list[int] = []
        self.setpoints: list[list[int]] = []
        self.fans: list[int] = []
        self.n_steps = n_steps
        self.steps = 0  # observations sent
        self.latched: tuple[int, int, int] | None = None
        self.action: tuple[float, ...] = ()
        self.problem: str | None = None
        self._source, self._sink = source, sink
        runtime = self.api.runtime
        runtime.set_console_output_status(self.state, False)
        for name, key in self.variables:
            self.exchange.request_variable(self.state, name, key)
        runtime.callback_after_predictor_after_hvac_managers(self.state, self._guarded(self.control))
        runtime.callback_end_zone_timestep_after_zone_reporting(self.state, self._guarded(self.finish))

    def run(self, model: Path, weather: Path) -> int:
        """Run the year.

        :return: the engine's exit code
        """
        arguments = ["-d", str(self.folder), "-w", str(weather), str(model)]
        return int(self.api.runtime.run_energyplus(self.state, arguments))

    def control(self, state: Any) -> None:
        """Apply the action; at the first sub-step of a step, show the observation and ask for it."""
        if not self._ready(state):
            return
        if self.exchange.warmup_flag(state):
            self._apply(state, (WARM_UP_SETPOINT, WARM_UP_SETPOINT, math.nan, math.nan))
            return
        if self.exchange.kind_of_sim(state) != _WEATHER_RUN_PERIOD:
            return
        now = (
            self.exchange.day_of_year(state),
            self.exchange.hour(state),
            self.exchange.zone_time_step_number(state),
        )
        if now != self.latched:
            self.latched = now
            self.action = self._exchange(state)
        self._apply(state, self.action)

    def finish(self, state: Any) -> None:
        """Show the observation after the last step."""
        if self.latched is not None and self.steps == self.n_steps and not self.exchange.warmup_flag(state):
            self._send(state)
            self.api.runtime.stop_simulation(state)

    def _guarded(self, callback: Any) -> Any:
        def guarded(state: Any) -> None:
            if self.problem is not None:
                return
            try:
                callback(state)
            except Exception as error:  # ctypes would print it and continue
                self.problem = f"{type(error).__name__}: {error}"
                self.api.runtime.stop_simulation(state)

        return guarded

    def _ready(self, state: Any) -> bool:
        if self.handles:
            return True
        exchange = self.exchange
        if not exchange.api_data_fully_ready(state):
            return False
        self.handles = [exchange.get_variable_handle(state, name, key) for name, key in self.variables]
        self.setpoints = [
            [
                exchange.get_actuator_handle(state, "System Node Setpoint", "Temperature Setpoint", node)
                for node in SETPOINT_NODES[zone]
            ]
            for zone in ZONES
        ]
        self.fans = [
            exchange.get_actuator_handle(state, "Fan", "Fan Air Mass Flow Rate", f"{zone} Zone Supply Fan")
            for zone in ZONES
        ]
        missing = [name for (name, _), handle in zip(self.variables, self.handles, strict=True) if handle < 0]
        if any(handle < 0 for handle in [*self.fans, *self.setpoints[0], *self.setpoints[1]]):
            missing.append("an actuator of the supply loops")
        if missing:
            raise LookupError(f"the building model has no {', '.join(missing)}")
        return True

    def _apply(self, state: Any, action: tuple[float, ...]) -> None:
        if math.isnan(action[0]):  # the engine's own controllers
            for handle in [*self.fans, *self.setpoints[0], *self.setpoints[1]]:
                self.exchange.reset_actuator(state, handle)
            return
        for zone in range(2):
            for handle in self.setpoints[zone]:
                self.exchange.set_actuator_value(state, handle, action[zone])
            if math.isnan(action[2 + zone]):
                self.exchange.reset_actuator(state, self.fans[zone])
            else:
                self.exchange.set_actuator_value(state, self.fans[zone], action[2 + zone])

    def _exchange(self, state: Any) -> tuple[float, ...]:
        self._send(state)
        self.steps += 1
        content = b""
        while len(content) < 32:
            piece = os.read(self._source, 32 - len(content))
            if not piece:  # nobody steps any more
                shutil.rmtree(self.folder, ignore_errors=True)
                os._exit(0)
            content += piece
        return struct.unpack("=4d", content)

    def _send(self, state: Any) -> None:
        values = [self.exchange.get_variable_value(state, handle) for handle in self.handles]
        os.write(self._sink, struct.pack(f"={len(values)}d", *values))


def main() -> int:
    """Run what the parent asked for as JSON in the first argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    order = json.loads(sys.argv[1])
    folder = Path(order["folder"])
    threading.Thread(target=follow_parent, args=(folder, order["parent"]), daemon=True).start()
    watched = [(str(name), str(key)) for name, key in order["watched"]]
    year = Year(folder, watched, order["n_steps"], order["source"], order["sink"])
    code = year.run(Path(order["model"]), Path(order["weather"]))
    if year.problem is not None:
        print(year.problem, file=sys.stderr, flush=True)
        code = FAILED
    elif year.steps < order["n_steps"]:
        errors = folder / "eplusout.err"
        with contextlib.suppress(OSError):
            print(errors.read_text(errors="replace"), file=sys.stderr, flush=True)
        code = code or FAILED
    return code


if __name__ == "__main__":
    result = main()
    sys.stderr.flush()
    os._exit(result)  # the engine's library has nothing left to say
