"""Environments in separate processes, whose errors reach the learner as what they are."""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

import gymnasium
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv
from stable_baselines3.common.vec_env.base_vec_env import CloudpickleWrapper
from stable_baselines3.common.vec_env.subproc_vec_env import _worker

_PATIENCE = 5.0  # seconds that an environment gets to close


class EnvProcessError(EOFError):
    """An environment's process ended without an answer, or what it raised cannot be sent."""


class _RemoteTraceback(Exception):
    """Shows where in the other process an error was raised."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class _Failure:
    """An error on its way to the learner."""

    error: Exception
    traceback: str


class SubprocessVecEnv(SubprocVecEnv):
    """Stable-Baselines3's ``SubprocVecEnv``, except that an environment's error is raised here, traceback included.

    There the environment's process dies of it, and the learner sees an ``EOFError``. Closing ends processes that do
    not answer, and processes end with the learner, however it ends.

    :param makers: build one environment each, in its own process
    :raises Exception: what an environment raised, from the call that needed its answer
    """

    def __init__(self, makers: Sequence[Callable[[], gymnasium.Env[Any, Any]]]) -> None:
        self.waiting = False
        self.closed = False
        context: Any = mp.get_context("forkserver" if "forkserver" in mp.get_all_start_methods() else "spawn")
        pipes = [context.Pipe() for _ in makers]
        self.processes = []
        for (ours, theirs), make in zip(pipes, makers, strict=True):
            process = context.Process(
                target=_work, args=(theirs, ours, CloudpickleWrapper(make)), daemon=True
            )
            process.start()
            theirs.close()
            self.processes.append(process)
        self.remotes = tuple(
            _Remote(ours, process, index)
            for index, ((ours, _), process) in enumerate(zip(pipes, self.processes, strict=True))
        )
        try:
            self.remotes[0].send(("get_spaces", None))
            observation_space, action_space = self.remotes[0].recv()
        except Exception:  # any error of an environment: end the processes, then raise it as it is
            self.close()
            raise
        VecEnv.__init__(self, len(makers), observation_space, action_space)

    def close(self) -> None:
        """End the processes.

        :raises Exception: what an environment raised while it was closed, unless one has failed before
        """
        if self.closed:
            return
        self.closed = True
        remotes: tuple[Any, ...] = self.remotes
        failed_before = any(remote.failed for remote in remotes)
        failure: Exception | None = None
        for remote in remotes:
            with contextlib.suppress(EnvProcessError):
                remote.send(("close", None))
        until = time.monotonic() + _PATIENCE
        for remote in remotes:
            try:
                remote.drain(until)
            except Exception as error:  # any error of an environment: end the other processes first
                failure = failure or error
            remote.close()
        if failure is not None and not failed_before:
            raise failure


class _Remote:
    """Our end of the pipe to one environment."""

    def __init__(self, pipe: Any, process: Any, index: int) -> None:
        self._pipe = pipe
        self._process = process
        self._index = index
        self.failed = False

    def fileno(self) -> int:
        return int(self._pipe.fileno())

    def send(self, message: Any) -> None:
        try:
            self._pipe.send(message)
        except OSError:
            if not self.failed and self._pipe.poll():  # it has said why
                self.recv()
            raise self._gone() from None

    def recv(self) -> Any:
        try:
            answer = self._pipe.recv()
        except (EOFError, OSError):
            raise self._gone() from None
        if isinstance(answer, _Failure):
            self.failed = True
            raise answer.error from _RemoteTraceback(answer.traceback)
        return answer

    def drain(self, until: float) -> None:
        """Wait until the process has ended, which may have answers left to send; end it when time is up."""
        try:
            while time.monotonic() < until and self._pipe.poll(until - time.monotonic()):
                self.recv()
        except EnvProcessError:
            pass
        finally:
            self._process.join(max(0.0, until - time.monotonic()))
            if self._process.is_alive():
                self._process.kill()
                self._process.join()

    def close(self) -> None:
        self._pipe.close()

    def _gone(self) -> EnvProcessError:
        self.failed = True
        self._process.join(1.0)
        code = self._process.exitcode
        how = (
            f"was ended by {signal.Signals(-code).name}"
            if code is not None and code < 0
            else f"exited ({code})"
        )
        return EnvProcessError(f"environment {self._index}: its process {how} without an answer")


def _work(pipe: Any, parent_pipe: Any, make: CloudpickleWrapper) -> None:
    """Run one environment; what it raises is sent instead of an answer."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches every process of a terminal; the learner decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _worker(pipe, parent_pipe, make)
    except Exception as error:  # any error of an environment: the learner raises it
        with contextlib.suppress(OSError):  # the parent is gone
            pipe.send(_Failure(_sendable(error), traceback.format_exc()))


def _end_with_parent() -> None:
    parent = mp.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _sendable(error: Exception) -> Exception:
    try:
        again = ForkingPickler.loads(ForkingPickler.dumps(error))  # as the pipe will
        if type(again) is type(error):
            return error
    except Exception:  # pickling runs the error's own code, which may raise anything
        pass
    other = EnvProcessError(f"{type(error).__name__}: {error}")
    for note in getattr(error, "__notes__", ()):
        other.add_note(note)
    return other
