"""The EnergyPlus engine, one process per year."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from rlexp.envs.datacenter import building_model
from rlexp.envs.datacenter.packages import require_engine
from rlexp.envs.datacenter.weather import Floats, Weather, write

_PREFIX = "rlexp-engine-"
_LOCK = ".lock"
_STALE_SECONDS = 60.0
_OBSERVED = 5
_LEAST_SERVER_LOAD = 1000.0  # W; the lights alone take 57 W at night
_ERROR_WORDS = ("** Severe  **", "**  Fatal  **")


class EngineError(RuntimeError):
    """The engine crashed, hung or was given something that it cannot run."""


class Engine:
    """Steps the building through a year.

    :param timeout_s: seconds after which an engine that does not answer counts as hung
    :param watched: further output variables, ``(name, key)``, appended to every observation
    :raises UsageError: when the engine or its building is not installed
    """

    name = "engine"

    def __init__(self, timeout_s: float = 300.0, watched: Sequence[tuple[str, str]] = ()) -> None:
        require_engine()
        self.timeout_s = timeout_s
        self.watched = tuple(watched)
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._errors: IO[str] | None = None
        self._said: IO[str] | None = None
        self._lock: IO[str] | None = None
        self._pipes: list[int] = []
        self._size = 8 * (_OBSERVED + len(self.watched))
        self._steps = self._n_steps = 0
        self._weather: Weather | None = None
        self._self_regulating = False

    def __getstate__(self) -> dict[str, Any]:
        if self._process is not None:
            raise TypeError(
                "env=datacenter: an engine under way can be neither copied nor pickled; hand over a function that "
                "builds the environment, or use env.backend=surrogate"
            )
        return vars(self)

    def begin(self, weather: Weather, n_steps: int) -> Floats:
        """Start a year on the first of January, after the engine's own warm-up days.

        It is an agent's; a first step that is left to the building's own controllers starts it again with them.

        :param weather: the year
        :param n_steps: steps of 15 minutes after which it ends
        :return: outdoor, west and east temperature in degrees Celsius, power of the servers with the lights and of
            the cooling in watts, and what else is watched
        :raises EngineError: when it does not come up, or comes up without server load
        """
        return self._begin(weather, n_steps, self_regulating=False)

    def _begin(self, weather: Weather, n_steps: int, *, self_regulating: bool) -> Floats:
        self.close()
        _remove_stale()
        self._weather, self._self_regulating = weather, self_regulating
        try:
            self._start(weather, n_steps)
            values = self._receive()
            self._release_files()
        except BaseException:
            self.close()
            raise
        if values[3] < _LEAST_SERVER_LOAD:
            self.close()
            raise EngineError(
                f"the building has no server load: {values[3]:.0f} W where at least {_LEAST_SERVER_LOAD:.0f} W are "
                "expected; the building model does not fit the engine"
            )
        return values

    def step(self, setpoints: Sequence[float], flows: Sequence[float]) -> Floats:
        """Hold supply temperatures and fan flows for 15 minutes.

        :param setpoints: of the supply air, west and east, in degrees Celsius; NaN: the engine's own controllers
        :param flows: of the fans, west and east, in kg/s; NaN: the engine's own controllers
        :return: what :meth:`begin` returns, 15 minutes later
        :raises EngineError: when it crashes or hangs, or changes hands within a year
        """
        if self._process is None or self._weather is None:
            raise EngineError("no year has begun")
        if (own := math.isnan(setpoints[0])) != self._self_regulating:
            if self._steps > 0:
                raise EngineError("a year is left to the building's own controllers as a whole or not at all")
            self._begin(self._weather, self._n_steps, self_regulating=own)
        content = struct.pack("=4d", setpoints[0], setpoints[1], flows[0], flows[1])
        try:
            os.write(self._pipes[1], content)
        except BrokenPipeError:
            raise self._gone() from None
        self._steps += 1
        return self._receive()

    def own_controllers(self) -> Floats:
        """Leave the next 15 minutes to the engine's own controllers; see :meth:`step`."""
        return self.step((math.nan, math.nan), (math.nan, math.nan))

    def close(self) -> None:
        """End the process, if there is one, and leave nothing behind."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        for pipe in self._pipes:
            os.close(pipe)
        self._pipes = []
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        for file in (self._errors, self._said, self._lock):
            if file is not None:
                file.close()
        self._errors = self._said = self._lock = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    # --------------------------------------------------------------------------------------------------- process

    def _start(self, weather: Weather, n_steps: int) -> None:
        self._steps, self._n_steps = 0, n_steps
        folder = self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = self._lock = (folder / _LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        building = folder / "building.epJSON"
        building.write_text(json.dumps(building_model.building(self._self_regulating)), encoding="utf-8")
        epw = weather.path
        if epw is None:
            epw = folder / "weather.epw"
            write(weather, epw)
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        actions_out, actions_in = os.pipe()
        values_out, values_in = os.pipe()
        order = {
            "folder": str(folder),
            "parent": os.getpid(),
            "watched": self.watched,
            "n_steps": n_steps,
            "source": actions_out,
            "sink": values_in,
            "model": str(building),
            "weather": str(epw),
        }
        worker = Path(__file__).with_name("engine_process.py")
        self._pipes = [values_out, actions_in]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(worker), json.dumps(order)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                pass_fds=(actions_out, values_in, lock.fileno()),
            )
        finally:
            os.close(actions_out)
            os.close(values_in)

    def _release_files(self) -> None:
        """Unlink the engine's files: all are open by now and vanish with the process, even if that is killed."""
        assert self._folder is not None
        with contextlib.suppress(OSError):
            self._errors = (self._folder / "eplusout.err").open(encoding="utf-8", errors="replace")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _receive(self) -> Floats:
        content = b""
        deadline = time.monotonic() + self.timeout_s
        poll = select.poll()
        poll.register(self._pipes[0], select.POLLIN | select.POLLHUP)
        while len(content) < self._size:
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(1000 * left):
                reason = f"the engine does not answer for {self.timeout_s:g} s {self._where()}"
                self.close()
                raise EngineError(reason)
            piece = os.read(self._pipes[0], self._size - len(content))
            if not piece:
                raise self._gone()
            content += piece
        return np.frombuffer(content, dtype=np.float64)

    def _where(self) -> str:
        if self._steps == 0:
            return "while it starts"
        day, quarter = divmod(self._steps - 1, 96)
        return (
            f"at step {self._steps:,} of {self._n_steps:,} "
            f"(day {day + 1}, {quarter // 4:02d}:{15 * (quarter % 4):02d})"
        )

    def _gone(self) -> EngineError:
        """Say why the process is no longer there."""
        assert self._process is not None
        try:
            code = self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            code = 0
        how = f"was killed by signal {-code}" if code < 0 else f"stopped with exit code {code}"
        said = self._complaints(_ERROR_WORDS[-1:] if code < 0 else _ERROR_WORDS)
        where = self._where()
        self.close()
        return EngineError(f"the engine {how} {where}" + (f": {said}" if said else ""))

    def _complaints(self, markers: Sequence[str]) -> str:
        """Return what the engine itself said was wrong, in one line.

        :param markers: what marks such lines; some severe ones mean nothing under unusual actions
        """
        texts = []
        for file in (self._errors, self._said):
            if file is not None:
                file.seek(0)
                texts.append(file.read())
        lines = "\n".join(texts).splitlines()
        found = [line.split(marker, 1)[1].strip() for line in lines for marker in markers if marker in line]
        if found:  # the last ones are what ended it
            return " / ".join(found[-3:])
        spoken = [line.strip() for line in texts[-1].splitlines() if line.strip()]
        return spoken[-1] if spoken else ""


def _remove_stale() -> None:
    """Remove folders of engines that were killed together with their parent process, before they had begun."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if time.time() - folder.stat().st_mtime < _STALE_SECONDS:
                continue
            with (folder / _LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # another's, in use, or gone already
            continue
