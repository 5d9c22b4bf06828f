"""One command line in a forked child with an empty folder of its own, and what it did there.

The parent has loaded torch and Stable-Baselines3 once, so that a case costs what the command does and not ten seconds
of imports. A case leads a session of its own: whatever of it is still alive when it has ended was left behind.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CANARY = "CANARY"  # what an injected command would make, in the folder above the case's own
_MEMORY = 12 << 30  # bytes of address space, so that a size beyond memory cannot end the machine
_GRACE = 3.0  # seconds in which resource trackers and children that were asked to end do so
_ADDRESS = re.compile(r"0x[0-9a-f]+")

Prepare = Callable[[Path], None]


@dataclass
class Result:
    """What a command did.

    :param code: exit code, None when it ran past its time
    :param left: files that were not there before, relative
    :param alive: command lines of processes that outlived it
    :param connections: addresses that it tried to reach
    """

    code: int | None
    out: str
    err: str
    seconds: float
    left: list[str] = field(default_factory=list)
    alive: list[str] = field(default_factory=list)
    connections: list[str] = field(default_factory=list)
    canary: bool = False


class Trap:
    """A listener to which every proxy and W&B's address point; whoever connects is noted."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.visits = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            self.visits += 1
            connection.close()


def preload() -> None:
    """Load what every command would, once; nothing of it may start a thread."""
    import gymnasium  # noqa: F401
    import hydra._internal.hydra  # noqa: F401
    import sb3_contrib  # noqa: F401
    import stable_baselines3  # noqa: F401
    import torch as th

    import rlexp.cli
    import rlexp.cli.demos
    import rlexp.cli.evaluate
    import rlexp.cli.list
    import rlexp.cli.report
    import rlexp.cli.sweep
    import rlexp.cli.train
    import rlexp.runs.experiment  # noqa: F401

    th.set_num_threads(1)


def snapshot(folder: Path) -> set[str]:
    """Return every file and folder below, links not followed."""
    return {
        str((Path(top) / name).relative_to(folder))
        for top, folders, files in os.walk(folder)
        for name in (*folders, *files)
    }


def run(
    argv: list[str],
    folder: Path,
    seconds: float,
    setup: Callable[[], None] | None = None,
    at: Callable[[int], None] | None = None,
) -> Result:
    """Run one command line in a folder that exists.

    :param seconds: time limit
    :param setup: called in the child before the command, e.g. to replace something
    :param at: called with the child's id in the parent while it runs, e.g. to send signals
    """
    before = snapshot(folder)
    notes = folder.parent / f"{folder.name}.notes"
    out, err = (folder.parent / f"{folder.name}.{end}" for end in ("out", "err"))
    since = time.monotonic()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _child(argv, folder, out, err, notes, setup)  # never returns
    if at is not None:
        threading.Thread(target=at, args=(child,), daemon=True).start()
    code = _wait(child, since + seconds)
    duration = time.monotonic() - since
    alive = _ended(child)
    return Result(
        code,
        _read(out),
        _read(err),
        duration,
        sorted(snapshot(folder) - before),
        alive,
        _read(notes).splitlines(),
        (folder.parent / CANARY).exists(),
    )


def _child(
    argv: list[str], folder: Path, out: Path, err: Path, notes: Path, setup: Callable[[], None] | None
) -> None:
    code = 70
    try:
        os.setsid()
        for number, path in ((1, out), (2, err)):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(folder)
        # Loggers and consoles made from here on must write where the descriptors point.
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
        sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr  # type: ignore[misc]
        sys.argv = ["rlexp", *argv]
        sys.path[:] = [entry for entry in sys.path if entry not in ("", ".")]
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        _note_connections(notes)
        if setup is not None:
            setup()
        from rlexp.cli import main

        try:
            code = main(None)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1 if stop.code else 0
            if isinstance(stop.code, str):
                print(stop.code, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
            code = 1
        _leave()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _leave() -> None:
    """Do what the interpreter does at its end: threads and pools of processes first, then exit handlers."""
    import atexit

    for end in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
        with contextlib.suppress(Exception):
            end()


def _note_connections(notes: Path) -> None:
    handle = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def hook(event: str, arguments: Any) -> None:
        if event == "socket.connect" and isinstance(arguments[1], tuple):
            os.write(handle, f"connect {arguments[1]!r}\n".encode())
        elif event == "socket.getaddrinfo":
            os.write(handle, f"look up {arguments[0]!r}\n".encode())

    sys.addaudithook(hook)


def _wait(child: int, until: float) -> int | None:
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.01)


def _session(leader: int) -> dict[int, str]:
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:120]
        except OSError:
            continue
    return found


def _ended(leader: int) -> list[str]:
    """Return what of a session is still alive after a while, and end it."""
    until = time.monotonic() + _GRACE
    while (alive := _session(leader)) and time.monotonic() < until:
        time.sleep(0.05)
    for process in alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return list(alive.values())


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def discard(folder: Path) -> None:
    """Delete a case's folder and what lies beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    for end in ("out", "err", "notes"):
        folder.with_name(f"{folder.name}.{end}").unlink(missing_ok=True)
