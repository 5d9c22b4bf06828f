"""Stands in for the training of one run: quick, resumable, and able to fail, to hang and to be interrupted.

``fake_run.py FOLDER SECONDS [fail|crash]``: every tenth of a second is one step, kept in ``progress``; every
start is noted in ``starts``.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path

from rlexp.system import stopping


def main() -> int:
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
    how = sys.argv[3] if len(sys.argv) > 3 else ""
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / ".lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print(f"{folder}: another process is working on this run", file=sys.stderr)
        return 2
    stopped: list[int] = []
    if stopping.PARENT in os.environ:
        stopping.follow_parent(int(os.environ[stopping.PARENT]))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: stopped.append(got))
    with (folder / "starts").open("a") as starts:
        starts.write(f"{os.getpid()} OMP={os.environ.get('OMP_NUM_THREADS')}\n")
    write(folder, status="running")
    done = int((folder / "progress").read_text()) if (folder / "progress").exists() else 0
    if how == "crash":
        print("some noise\nSegmentation, so to say", flush=True)
        os._exit(7)
    while done < 10 * seconds:
        if how == "fail" and done >= 1:
            write(
                folder,
                status="failed",
                error="Traceback\n  ...\nArithmeticError: loss became nan at step 17\n",
            )
            return 1
        if stopped:
            write(folder, status="interrupted")
            return 128 + stopped[0]
        time.sleep(0.1)
        done += 1
        (folder / "progress").write_text(str(done))
    write(folder, status="finished", wall_s=seconds)
    return 0


def write(folder: Path, **record: object) -> None:
    temporary = folder / ".record.new"
    temporary.write_text(json.dumps(record))
    temporary.replace(folder / "record.json")


if __name__ == "__main__":
    sys.exit(main())
