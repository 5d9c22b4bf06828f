"""Training the runs of a sweep, one process each.

Every run is a separate command line, so that what one of them breaks stays its own, and threads, random
states and loggers cannot leak from run to run. Every run ends with the sweep, also after ``kill -9``: it saves its
state, and the same sweep continues with all of them.

By hand, not with a launcher of Hydra's: those report failures only at the end, and leave runs behind when they die.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from rlexp.reports.definition import Expected, last_line, slug
from rlexp.runs.folder import RECORD, in_use
from rlexp.sweep.plan import FAILED, FINISHED, State, state
from rlexp.system import stopping

Command = Callable[[Expected], list[str]]

_POLL_SECONDS = 0.1
_RETRY_SECONDS = 1.0
_KILL_SECONDS = 2.0  # for what a second signal asks of the runs


def train_command(run: Expected) -> list[str]:
    """Return the command line that trains one run."""
    return [sys.executable, "-P", "-m", "rlexp", *run.overrides, "hardware.torch_threads=1"]


class Listener(Protocol):
    """What shows the progress of a sweep."""

    def started(self, run: Expected) -> None: ...

    def finished(self, run: Expected, seconds: float) -> None: ...

    def failed(self, run: Expected, error: str, log: Path) -> None: ...

    def waiting(self, run: Expected) -> None: ...

    def tick(self, running: Sequence[Expected], waiting: int) -> None: ...


@dataclass
class Outcome:
    """How a sweep ended.

    :param failed: runs that failed, with the last line of the error and the log
    :param signal: the signal that stopped it, 0 for none
    """

    trained: list[Expected] = field(default_factory=list)
    failed: list[tuple[Expected, str, Path]] = field(default_factory=list)
    left: int = 0
    signal: int = 0


@dataclass
class _Child:
    run: Expected
    process: subprocess.Popen[bytes]
    log: Path
    output: IO[bytes]
    began: float
    record_before: int | None
    signalled: bool = False


class Sweeper:
    """Trains runs, ``jobs`` at a time.

    :param runs: runs that are not finished; those that share a folder are trained once
    :param jobs: processes side by side
    :param logs: folder of what the processes print
    :param listener: shows what happens
    :param command: command line of a run; tests substitute quick ones
    """

    def __init__(
        self,
        runs: Sequence[Expected],
        jobs: int,
        logs: Path,
        listener: Listener,
        command: Command = train_command,
    ) -> None:
        unique: dict[Path, Expected] = {}
        for run in runs:
            unique.setdefault(run.folder, run)
        self._waiting = deque(unique.values())
        self._jobs = jobs
        self._logs = logs
        self._listener = listener
        self._command = command
        self._children: list[_Child] = []
        self._outcome = Outcome()
        self._not_before: dict[Path, float] = {}
        self._announced: set[Path] = set()

    def run(self) -> Outcome:
        """Train until nothing is left or a signal comes."""
        self._logs.mkdir(parents=True, exist_ok=True)
        try:
            with stopping.listening(), stopping.deferred(self._describe_stop, self._kill):
                while self._children or (self._waiting and not self._outcome.signal):
                    self._outcome.signal = stopping.requested() or 0
                    self._fill()
                    self._forward()
                    self._reap()
                    self._listener.tick([child.run for child in self._children], len(self._waiting))
                    time.sleep(_POLL_SECONDS)
        finally:
            for child in self._children:  # only when something above broke
                child.process.terminate()
        self._outcome.left = len(self._waiting)
        return self._outcome

    def _fill(self) -> None:
        now = time.monotonic()
        for _ in range(len(self._waiting)):
            if len(self._children) >= self._jobs or self._outcome.signal:
                return
            run = self._waiting.popleft()
            if now < self._not_before.get(run.folder, 0.0):
                self._waiting.append(run)
            elif state(run).status == FINISHED:  # another sweep was quicker
                self._listener.finished(run, 0.0)
            elif in_use(run.folder):
                self._postpone(run)
            else:
                self._start(run)

    def _postpone(self, run: Expected) -> None:
        """Leave a run alone that another process works on, and look again later."""
        self._not_before[run.folder] = time.monotonic() + _RETRY_SECONDS
        self._waiting.append(run)
        if run.folder not in self._announced:
            self._announced.add(run.folder)
            self._listener.waiting(run)

    def _start(self, run: Expected) -> None:
        log = self._logs / f"{slug(run.label)}-seed={run.seed}.log"
        output = log.open("wb")
        record_before = _written(run)
        process = subprocess.Popen(
            self._command(run),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(),
            # A group of its own: Ctrl-C reaches the sweep alone, which passes it on exactly once.
            process_group=0,
        )
        self._children.append(_Child(run, process, log, output, time.monotonic(), record_before))
        self._listener.started(run)

    def _reap(self) -> None:
        for child in list(self._children):
            code = child.process.poll()
            if code is None:
                continue
            self._children.remove(child)
            child.output.close()
            self._settle(child, code)

    def _settle(self, child: _Child, code: int) -> None:
        found = state(child.run)
        if found.status == FINISHED:
            self._outcome.trained.append(child.run)
            self._listener.finished(child.run, time.monotonic() - child.began)
        elif self._outcome.signal:
            self._waiting.append(child.run)
        elif code != 0 and in_use(child.run.folder):  # another process was quicker to take it
            self._postpone(child.run)
        else:
            error = _error(child, code, found)
            self._outcome.failed.append((child.run, error, child.log))
            self._listener.failed(child.run, error, child.log)

    def _describe_stop(self, _: str) -> str:
        return f"stopping: {len(self._children)} runs save their state and end; a second signal ends them at once"

    def _forward(self) -> None:
        """Pass the signal on to every child, also to those that began as it came."""
        for child in self._children:
            if self._outcome.signal and not child.signalled:
                child.process.send_signal(self._outcome.signal)
                child.signalled = True

    def _kill(self, number: int) -> None:
        """End the children at once; runs that can still answer end their records first."""
        until = time.monotonic() + _KILL_SECONDS
        children = list(self._children)
        while any(child.process.poll() is None for child in children) and time.monotonic() < until:
            for child in children:
                child.process.send_signal(number)
            time.sleep(_POLL_SECONDS)
        for child in children:
            child.process.kill()


def _error(child: _Child, code: int, found: State) -> str:
    """Say why a run has ended: its record knows, or what it printed, or only the system."""
    if found.status == FAILED and found.error and _written(child.run) != child.record_before:
        return found.error
    if code < 0:
        return f"ended by signal {-code} ({signal.Signals(-code).name})"
    if code - 128 in stopping.SIGNALS:
        return f"stopped by {stopping.name(code - 128)}"
    text = child.log.read_text(encoding="utf-8", errors="replace")
    messages = [line for line in text.splitlines() if line.startswith(("rlexp: ", "failed: "))]
    if messages:
        return messages[-1]
    return (
        last_line(text)
        if "Traceback (most recent call last)" in text
        else f"exit code {code} without a message"
    )


def _written(run: Expected) -> int | None:
    """Return when a run's record was written, in nanoseconds."""
    try:
        return (run.folder / RECORD).stat().st_mtime_ns
    except OSError:
        return None


def _environment() -> dict[str, str]:
    single = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {**os.environ, **single, stopping.PARENT: str(os.getpid())}


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
