"""SIGINT and SIGTERM acknowledged immediately, at any moment; and processes that end with the one that started them.

Python runs signal handlers in the main thread alone, between two bytecodes: while a library is loaded or an environment
hangs in C no handler would run. So a separate thread is woken by every signal. It acknowledges the signal
and ends the process when a second one comes or when the first one has no effect.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PARENT = "RLEXP_PARENT"  # environment variable: the process with which this one ends

_REPEAT_SECONDS = 0.5  # `timeout` and other wrappers send a signal to the process and again to its group
_UNWIND_SECONDS = 5.0  # for cleaning up where nothing has to be saved
_ORPHAN_SECONDS = 4.0  # for saving after the parent has died
_LAST_SECONDS = 3.0  # for records and children when a second signal came
_POLL_SECONDS = 0.5
_CLOSE = 0  # no signal has this number


def name(number: int | None) -> str:
    """Return what people call a signal; without one it was the keyboard's."""
    return "Ctrl-C" if number in (None, signal.SIGINT) else signal.Signals(number).name


class Stopped(KeyboardInterrupt):
    """A signal asked the process to end; libraries clean up behind a ``KeyboardInterrupt`` and let it pass.

    :param number: the signal
    """

    def __init__(self, number: int) -> None:
        super().__init__(name(number))
        self.exit_code = 128 + number


@dataclass(frozen=True)
class _Scope:
    """How a part of the program is stopped.

    :param immediate: :class:`Stopped` is raised wherever it is; else only where the program asks
    :param describe: from what is being done to the line that answers the first signal
    :param doing: returns what is being done
    :param end: called by the watching thread before it ends the process
    """

    immediate: bool
    describe: Callable[[str], str] = "stopping after {}".format
    doing: Callable[[], str] = "the current step".__str__
    end: Callable[[int], None] | None = None


class _Listener:
    """Handlers and watching thread of this process."""

    def __init__(self, quiet: bool) -> None:
        self.requested: int | None = None
        self._quiet = quiet
        self.scopes = [_Scope(immediate=True)]
        self.scope = self.scopes[0]  # in which the first signal came
        self._raised = False
        self._noted_at: float | None = None
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._fd_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._hook_before = sys.unraisablehook
        self._before: dict[int, Any] = {}
        self._thread = threading.Thread(target=self._watch, name="rlexp-signals", daemon=True)

    def open(self) -> None:
        sys.unraisablehook = self._unraisable
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup`, or a job of a shell script
                self._before[number] = signal.getsignal(number)
                signal.signal(number, self._handle)
        self._thread.start()

    def close(self, whole_process: bool) -> None:
        self.scopes.append(_Scope(immediate=False))
        for number, handler in self._before.items():
            if whole_process:
                signal.signal(number, lambda number, _: os._exit(128 + number))
            elif signal.getsignal(number) == self._handle:
                signal.signal(number, handler)
        sys.unraisablehook = self._hook_before
        if self._thread.ident is not None:  # let it answer what came before
            os.write(self._write, bytes([_CLOSE]))
            self._thread.join()
        if not whole_process:
            signal.set_wakeup_fd(self._fd_before)
            os.close(self._read)
            os.close(self._write)

    def _handle(self, number: int, _: FrameType | None) -> None:
        self._note(number)
        if self.scopes[-1].immediate and not self._raised:
            self._raised = True
            raise Stopped(number)

    def _note(self, number: int) -> None:
        """Note the first signal; the handler and the watching thread may both be first."""
        if self.requested is None:
            self.scope = self.scopes[-1]
            self.requested = number

    def _unraisable(self, problem: sys.UnraisableHookArgs) -> None:
        if problem.exc_type is not Stopped:  # in a finalizer; the watching thread sees to the end
            self._hook_before(problem)

    def _watch(self) -> None:
        deadline: float | None = None
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._read], [], [], left)[0]:
                self._end()
            for number in os.read(self._read, 64):
                if number == _CLOSE:
                    return
                if number not in self._before:
                    continue
                now = time.monotonic()
                if self._noted_at is None:
                    self._noted_at = now
                    self._note(number)
                    if self._answer(number):
                        deadline = now + _UNWIND_SECONDS
                elif now - self._noted_at >= _REPEAT_SECONDS:
                    if not self._quiet:
                        say("ended at once")
                    self._end()

    def _answer(self, number: int) -> bool:
        """Acknowledge a signal; return whether the program is to end wherever it is."""
        scope = self.scope
        if self._quiet:
            return scope.immediate
        if scope.immediate:
            say(f"stopped by {name(number)}")
            return True
        try:
            what = scope.describe(scope.doing())
        except Exception:  # it reads what the main thread is changing, which may fail in any way
            what = "stopping"
        say(f"{name(number)}: {what}")
        return False

    def _end(self) -> None:
        assert self.requested is not None
        number = self.requested
        # Whoever hangs may hold what this needs.
        last = threading.Thread(target=self._clean_up, args=(number,), daemon=True)
        last.start()
        last.join(_LAST_SECONDS)
        os._exit(128 + number)

    def _clean_up(self, number: int) -> None:
        end = self.scopes[-1].end
        if end is not None:
            end(number)
        if sys.stdout.isatty():
            os.write(sys.stdout.fileno(), b"\x1b[?25h")  # a progress bar hides the cursor
        sys.stdout.flush()


_listener: _Listener | None = None


@contextlib.contextmanager
def listening(whole_process: bool = False, quiet: bool = False) -> Iterator[None]:
    """Answer signals; raise :class:`Stopped` unless :func:`deferred`. Nothing changes inside of another such block.

    :param whole_process: the process ends after the block: a signal that comes then ends it in silence
    :param quiet: answer with what is done alone, no line; another process says it
    """
    global _listener
    if _listener is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    _listener = _Listener(quiet)
    try:
        _listener.open()
        yield
    finally:
        _listener.close(whole_process)
        if not whole_process:
            _listener = None


def requested() -> int | None:
    """Return the signal that asked this process to end, None so far."""
    return None if _listener is None else _listener.requested


def raise_if_requested() -> None:
    """Stop here if that was asked for.

    :raises Stopped: after a signal
    """
    number = requested()
    if number is not None:
        raise Stopped(number)


def deferred(
    describe: Callable[[str], str], end: Callable[[int], None] | None = None
) -> contextlib.AbstractContextManager[None]:
    """Only note signals; the block asks :func:`requested` where it can stop.

    :param describe: from what is being done, see :func:`doing`, to the line that answers the first signal
    :param end: called with the signal, in another thread, before a second signal ends the process
    """
    return _scope(immediate=False, describe=describe, end=end)


@contextlib.contextmanager
def immediate() -> Iterator[None]:
    """Inside of :func:`deferred`, let signals stop the block wherever it is.

    :raises Stopped: after a signal
    """
    raise_if_requested()
    with _scope(immediate=True):
        yield


def doing(what: str | Callable[[], str]) -> contextlib.AbstractContextManager[None]:
    """Say what a signal that is noted has to wait for.

    :param what: a noun, or what returns one from another thread
    """
    return _scope(doing=what if callable(what) else what.__str__)


@contextlib.contextmanager
def _scope(**changes: Any) -> Iterator[None]:
    if _listener is None:
        yield
        return
    scopes = _listener.scopes
    depth = len(scopes)
    scopes.append(dataclasses.replace(scopes[-1], **changes))
    try:
        yield
    finally:
        del scopes[depth:]


def say(line: str) -> None:
    """Write a line to the standard error stream past all buffers, from whatever thread."""
    clear = "\r\x1b[2K" if os.isatty(2) else ""  # of "^C" and of a progress bar
    with contextlib.suppress(OSError):
        os.write(2, f"{clear}rlexp: {line}\n".encode())


# --------------------------------------------------------------------------------------------- ending with the parent


def follow_parent(parent: int) -> None:
    """Ask this process to end when another one does, however that one ends; after some seconds end it.

    :param parent: process id
    """
    threading.Thread(target=_follow, args=(parent,), name="rlexp-parent", daemon=True).start()


def _follow(parent: int) -> None:
    _wait_for_end(parent)
    # With the default action the first one is the end; a run saves its state, and the second one does not wait for it.
    for seconds in (_ORPHAN_SECONDS, 2.0):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(seconds)
    os._exit(128 + signal.SIGTERM)


def _wait_for_end(process: int) -> None:
    if hasattr(os, "pidfd_open"):  # Linux
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(process)
            select.select([handle], [], [])
            os.close(handle)
            return
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(process, 0)
            time.sleep(_POLL_SECONDS)
