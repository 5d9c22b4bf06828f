"""Ends what a Ray cluster leaves behind, however the process that started it ends.

Ray's processes notice the death of their driver late or, where orphans have another parent than process 1, never. And
when its raylet dies, Ray ends the driver within a millisecond, in C++, before Python could say why. The guardian runs
as a script with the cluster's folder as its argument; its standard input ends with the process that started it. It
imports nothing but the standard library.

An orderly end is announced with ``dismissed``. Without that, and with the loss of the raylet in the driver's log, the
command in its further arguments runs with the reason as its last argument.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

LOCK = ".lock"
DISMISSED = b"dismissed\n"
_RAYLET_LOST = re.compile("connection to the plasma store is failed|Raylet IPC connection failed")
_SECONDS = 10.0
_NEW_SECONDS = 60.0  # in which a folder may not be locked yet


def users(folder: Path, exclude: int = 0) -> list[int]:
    """Return the processes that name a file of the folder in their command line or have one open (Linux).

    :param exclude: process to leave out, beside the calling one
    """
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) not in (exclude, os.getpid()):
            with contextlib.suppress(OSError):  # another user's, or it has ended
                if _uses(process, f"{folder}/"):
                    found.append(int(process.name))
    return found


def _uses(process: Path, prefix: str) -> bool:
    if any(
        f"{argument}/".startswith(prefix) or f"={prefix}" in argument for argument in command_line(process)
    ):
        return True
    for handle in (process / "fd").iterdir():
        with contextlib.suppress(OSError):
            if str(handle.readlink()).startswith(prefix):
                return True
    return False


def command_line(process: Path) -> list[str]:
    """Return the arguments of a process, the program first."""
    return (process / "cmdline").read_bytes().decode(errors="replace").split("\0")


def is_alive(process: int) -> bool:
    """Return whether a process runs; a zombie does not (Linux)."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def describe_loss(names: list[str]) -> str:
    """Return the error message for the end of a cluster's head processes."""
    return f"Ray has ended during the run ({', '.join(names)} is gone)"


def clear(folder: Path, exclude: int = 0) -> None:
    """Kill the processes that use the folder, and remove it.

    :param exclude: process to leave alone
    """
    until = time.monotonic() + _SECONDS
    while (found := users(folder, exclude)) and time.monotonic() < until:
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


def clear_stale(folders: Iterable[Path]) -> None:
    """Clear the folders whose guardian was killed."""
    for folder in folders:
        with contextlib.suppress(OSError):  # in use, another user's, or gone
            if time.time() - folder.stat().st_mtime < _NEW_SECONDS:
                continue
            with (folder / LOCK).open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            clear(folder)


def main() -> None:
    """Wait for the end of the process that started this one."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    folder, on_loss, starter = Path(sys.argv[1]), sys.argv[2:], os.getppid()
    handle = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    received = sys.stdin.buffer.read()
    if DISMISSED not in received and on_loss and _lost_its_raylet(folder):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run([*on_loss, describe_loss(["raylet"])], timeout=_SECONDS, check=False)
    clear(folder, exclude=starter)


def _lost_its_raylet(folder: Path) -> bool:
    """Return whether Ray ended the driver: it logs why; when the driver is killed, the raylet ends as well."""
    for log in folder.glob("ray/session_2*/logs/python-core-driver-*.log"):
        if _RAYLET_LOST.search(log.read_text(errors="replace")):
            return True
    return False


if __name__ == "__main__":
    main()
