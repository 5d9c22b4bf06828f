"""The worker processes of Hydra's joblib launcher: they stop when the main process does, and end with it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

from rlexp.system import stopping

_POLL_SECONDS = 0.1
_KILL_SECONDS = 2.0  # for runs to end their records when a second signal came


@contextlib.contextmanager
def stopped_with_this_process() -> Iterator[None]:
    """Pass a signal on to every joblib worker, and wait for what they train to be saved.

    :raises Stopped: at the end of the block, after a signal
    """
    import joblib
    from joblib._parallel_backends import LokyBackend
    from joblib.externals import loky

    usual: Any = LokyBackend
    register: Any = joblib.register_parallel_backend
    register("loky", lambda **options: usual(initializer=_begin, initargs=(os.getpid(),), **options))
    over = threading.Event()
    signalled: set[int] = set()

    def forward() -> None:
        while not over.wait(_POLL_SECONDS):
            if stopping.requested() is not None:
                for worker in multiprocessing.active_children():
                    if worker.pid not in signalled:
                        signalled.add(worker.pid or 0)
                        _send(worker, signal.SIGTERM)

    threading.Thread(target=forward, daemon=True).start()
    # Workers inherit what is blocked, and a terminal's Ctrl-C reaches them too: none arrives before they can answer.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, stopping.SIGNALS)
    try:
        with stopping.deferred(
            lambda _: "stopping: the runs save their state; a second signal ends them at once", _kill
        ):
            yield
    finally:
        over.set()
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        register("loky", usual)
        # joblib would keep them for the next multirun of this process, in the folder in which this one began.
        executor: Any = loky.get_reusable_executor
        executor(reuse=True).shutdown()
    stopping.raise_if_requested()


def is_worker() -> bool:
    """Return whether this process is a worker; jobs that wait for it are still to come."""
    return multiprocessing.parent_process() is not None


def _begin(parent: int) -> None:
    """Make a worker listen to its parent alone; called in the worker before its first job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lasting = contextlib.ExitStack()
    lasting.enter_context(stopping.listening(quiet=True))
    lasting.enter_context(stopping.deferred(str))
    lasting.pop_all()
    stopping.follow_parent(parent)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping.SIGNALS)


def _kill(_: int) -> None:
    workers = multiprocessing.active_children()
    until = time.monotonic() + _KILL_SECONDS
    while any(worker.is_alive() for worker in workers) and time.monotonic() < until:
        for worker in workers:
            _send(worker, signal.SIGTERM)
        time.sleep(_POLL_SECONDS)
    for worker in workers:
        _send(worker, signal.SIGKILL)


def _send(worker: Any, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(worker.pid, number)
