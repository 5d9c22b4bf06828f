"""Ends what an engine of Ray's leaves behind, however the process that started it ends.

Ray's processes notice the death of their driver late or, where orphans have another parent than process 1, never. This
one is started as a script with the engine's folder; its standard input ends with the process that started it. It
imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

LOCK = ".lock"
_SECONDS = 10.0
_NEW_SECONDS = 60.0  # in which a folder may not be locked yet


def users(folder: Path, but: int = 0) -> list[int]:
    """Return the processes that name a file of the folder in their command line or have one open (Linux).

    :param but: not this one; nor the one that asks
    """
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) not in (but, os.getpid()):
            with contextlib.suppress(OSError):  # another user's, or it has ended
                if _uses(process, f"{folder}/"):
                    found.append(int(process.name))
    return found


def _uses(process: Path, prefix: str) -> bool:
    if any(f"{word}/".startswith(prefix) or f"={prefix}" in word for word in command_line(process)):
        return True
    for handle in (process / "fd").iterdir():
        with contextlib.suppress(OSError):
            if str(handle.readlink()).startswith(prefix):
                return True
    return False


def command_line(process: Path) -> list[str]:
    """Return the arguments of a process, its program first."""
    return (process / "cmdline").read_bytes().decode(errors="replace").split("\0")


def clear(folder: Path, but: int = 0) -> None:
    """Kill whoever uses the folder, and remove it.

    :param but: not this process
    """
    until = time.monotonic() + _SECONDS
    while (found := users(folder, but)) and time.monotonic() < until:
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


def clear_stale(folders: Iterable[Path]) -> None:
    """Clear the folders whose guardian has been killed, too."""
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
    folder, starter = Path(sys.argv[1]), os.getppid()
    handle = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    while sys.stdin.buffer.read(1):
        pass
    clear(folder, but=starter)


if __name__ == "__main__":
    main()
