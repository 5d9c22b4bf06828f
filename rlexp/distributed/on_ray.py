"""The engine on Ray. Nothing else imports Ray, and nothing imports this module before Ray is asked for."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from rlexp.distributed import guardian
from rlexp.distributed.engine import Handle, ObjectLost, ProcessDied, Ref
from rlexp.distributed.guardian import clear_stale, command_line, users
from rlexp.errors import UsageError
from rlexp.system import extras

# Sockets are in the engine's folder, and the system allows their paths about 100 characters.
_LONGEST_TEMPORARY = 20
_PREFIX = "rlexp-ray-"
_HEAD = ("gcs_server", "raylet")
_CHECK_SECONDS = 1.0
_SILENT_SECONDS = 5.0  # after which the head of a joined cluster counts as gone
_KNOCK_SECONDS = 5.0
_ATTEMPTS = 3  # to start an engine


def require(address: str | None) -> None:
    """Check that Ray is installed and that the cluster to join answers.

    :param address: see :class:`RayEngine`
    :raises UsageError: when it is not installed, or does not answer
    """
    extras.require("ray", "ray", "hardware=ray")
    if address is None:
        return
    host, _, port = address.rpartition(":")
    if port.isdigit():
        try:  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), timeout=_KNOCK_SECONDS).close()
        except OSError as error:
            raise UsageError(
                f"hardware.ray.address: {address} given, nothing answers there ({error})"
            ) from error
    elif address != "auto":
        raise UsageError(f"hardware.ray.address: {address} given, allowed are auto, host:port and null")
    RayEngine(address, 0).close()


class RayEngine:
    """Joins a Ray cluster, or starts one of its own that ends with it.

    :param address: None: its own cluster, which only this machine can reach; else ``"auto"`` or ``host:port``
    :param processes: that will run at the same time; how many its own cluster allows
    :param object_store_mb: size of the shared object store of its own cluster, in MiB
    :param on_loss: command that runs, with the reason as its last argument, when Ray ends this process;
        only with its own cluster
    :raises UsageError: when the cluster cannot be reached
    """

    def __init__(
        self,
        address: str | None,
        processes: int,
        object_store_mb: int = 200,
        on_loss: Sequence[str] = (),
    ) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        self._folder: Path | None = None
        self._guardian: subprocess.Popen[bytes] | None = None
        self._head: dict[int, str] = {}
        self._checked_at = self._answered_at = time.monotonic()
        self._is_gone = False
        arguments: dict[str, Any] = {"address": address}
        if address is None:
            # Its processes authenticate with a secret that is in no file.
            os.environ.setdefault("RAY_AUTH_MODE", "token")
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
            os.environ.setdefault(
                "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0"
            )  # everywhere: listen to this machine only
            top = tempfile.gettempdir()
            top = top if len(top) <= _LONGEST_TEMPORARY else "/tmp"
            clear_stale(Path(top).glob(f"{_PREFIX}*"))
            self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=top))  # private to this user
            self._guardian = subprocess.Popen(
                [sys.executable, "-P", str(Path(guardian.__file__)), str(self._folder), *on_loss],
                stdin=subprocess.PIPE,
                start_new_session=True,
            )
            arguments = {
                "address": "local",
                "num_cpus": processes + 1,
                "object_store_memory": object_store_mb << 20,
                "include_dashboard": False,
                "_temp_dir": str(self._folder / "ray"),  # Ray opens its own folder to everybody
            }
        import ray

        self._ray = ray
        handler = signal.getsignal(signal.SIGTERM)
        try:
            quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
            self._begin({**arguments, **quiet, "job_config": _job_config()})
        except BaseException as error:
            self._ray.shutdown()
            self._dismiss_guardian()
            if address is None or not isinstance(error, (ConnectionError, RuntimeError, ValueError, OSError)):
                raise
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise UsageError(f"hardware.ray.address: {address} given, no cluster answers: {first}") from error
        finally:
            if handler is not None and signal.getsignal(signal.SIGTERM) is not handler:
                signal.signal(signal.SIGTERM, handler)  # Ray has installed its own
        self._head = {} if self._folder is None else self._find_head(self._folder)
        self._gcs_address: str = ray.get_runtime_context().gcs_address
        gone = ray.exceptions
        self._deaths = (
            gone.RayActorError,
            gone.WorkerCrashedError,
            gone.NodeDiedError,
            gone.OutOfMemoryError,
        )
        self._handles: list[Handle] = []

    def _begin(self, arguments: dict[str, Any]) -> None:
        for left in reversed(range(_ATTEMPTS)):
            try:
                self._ray.init(**arguments)
                return
            except Exception as error:
                # Ray gives itself 30 s, too few on a busy machine, and has no class of its own for that.
                if left == 0 or "timed out during startup" not in str(error):
                    raise
                self._clear_away()

    def _clear_away(self) -> None:
        """End what a failed start left behind: Ray itself only ends what has started."""
        self._ray.shutdown()
        if self._folder is not None:
            for process in users(self._folder / "ray"):
                with contextlib.suppress(OSError):  # it has ended by itself
                    os.kill(process, signal.SIGKILL)

    def _find_head(self, folder: Path) -> dict[int, str]:
        names = {}
        for process in users(folder):
            with contextlib.suppress(OSError):
                names[process] = Path(command_line(Path(f"/proc/{process}"))[0]).name
        return {process: name for process, name in names.items() if name in _HEAD}

    def _check_head(self) -> None:
        """Notice the end of the cluster's head processes: Ray itself would end this process a minute later.

        :raises RuntimeError: when it has ended
        """
        now = time.monotonic()
        if self._is_gone or now - self._checked_at < _CHECK_SECONDS:
            return
        self._checked_at = now
        ended = [name for process, name in self._head.items() if not guardian.is_alive(process)]
        if self._folder is None:
            host, _, port = self._gcs_address.rpartition(":")
            try:
                socket.create_connection((host, int(port)), timeout=_CHECK_SECONDS).close()
                self._answered_at = now
            except OSError:
                if now - self._answered_at > _SILENT_SECONDS:
                    ended = [f"the head at {self._gcs_address}"]
        if ended:
            self._is_gone = True
            raise RuntimeError(guardian.describe_loss(ended))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self, build: Callable[..., Any], *arguments: Any) -> Handle:
        """See :class:`~rlexp.distributed.engine.Engine`."""
        # The learner replaces dead processes, with other seeds: Ray itself restarts nothing.
        remote = self._ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(build)
        handle = remote.remote(*arguments)
        self._handles.append(handle)
        return handle

    def call(self, handle: Handle, method: str, *arguments: Any) -> Ref:
        """See :class:`~rlexp.distributed.engine.Engine`."""
        return getattr(handle, method).remote(*arguments)

    def call_pair(self, handle: Handle, method: str, *arguments: Any) -> tuple[Ref, Ref]:
        """See :class:`~rlexp.distributed.engine.Engine`."""
        first, second = getattr(handle, method).options(num_returns=2).remote(*arguments)
        return first, second

    def put(self, value: Any) -> Ref:
        """See :class:`~rlexp.distributed.engine.Engine`."""
        return self._ray.put(value)

    def wait(self, refs: Sequence[Ref], timeout: float) -> list[Ref]:
        """See :class:`~rlexp.distributed.engine.Engine`.

        :raises RuntimeError: when Ray itself has ended
        """
        self._check_head()
        if not refs:
            return []
        refs = list(refs)
        there, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0)
        if there or timeout <= 0:
            return list(there)
        there, _ = self._ray.wait(refs, num_returns=1, timeout=timeout)
        return list(there)

    def get(self, ref: Ref) -> Any:
        """See :class:`~rlexp.distributed.engine.Engine`."""
        try:
            return self._ray.get(ref)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, (*self._deaths, self._ray.exceptions.ObjectLostError)):
                raise ObjectLost(_first_line(error.cause)) from error  # an argument was lost
            raise error.cause from error
        except self._ray.exceptions.ObjectLostError as error:
            raise ObjectLost(_first_line(error)) from error
        except self._deaths as error:
            if getattr(error, "actor_init_failed", False):  # a new one would fail, too
                raise RuntimeError(f"a process could not start: {_last_line(error)}") from error
            raise ProcessDied(_first_line(error)) from error

    def kill(self, handle: Handle) -> None:
        """See :class:`~rlexp.distributed.engine.Engine`."""
        self._handles = [one for one in self._handles if one is not handle]
        if self._is_gone:
            return
        self._ray.kill(handle, no_restart=True)

    def close(self) -> None:
        """See :class:`~rlexp.distributed.engine.Engine`."""
        if self._is_gone:
            # Ray's shutdown would wait for an answer and crash: skip it once the failed run is recorded.
            atexit.register(_exit_as_failed)
        elif self._ray.is_initialized():
            for handle in list(self._handles):
                self.kill(handle)
            self._ray.shutdown()
        self._dismiss_guardian()

    def _dismiss_guardian(self) -> None:
        """Let the guardian end what is left and remove the folder."""
        if self._guardian is not None:
            with contextlib.suppress(OSError):  # it was killed
                self._guardian.communicate(guardian.DISMISSED)
            self._guardian = None


def _exit_as_failed() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _last_line(error: BaseException) -> str:
    return ([line for line in str(error).splitlines() if line.strip()] or [type(error).__name__])[-1]


def _job_config() -> Any:
    """Return a job whose processes import from the current folder only when this one does.

    Ray itself puts that folder before everything that is installed, unless a working folder is uploaded.
    """
    from ray.job_config import JobConfig

    class Job(JobConfig):
        def _runtime_env_has_working_dir(self) -> bool:
            return True

    here = str(Path.cwd())
    return Job(_py_driver_sys_path=[here] if here in sys.path else [])
