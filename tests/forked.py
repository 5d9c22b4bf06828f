"""The command line in a process forked from one that has imported everything, which takes most of a short command."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.forked_imports"])


class Forked:
    """A running ``rlexp``, to be handled as a :class:`subprocess.Popen` whose output goes to files.

    :param said: one file for all output; it is appended
    """

    def __init__(
        self, arguments: Sequence[str], cwd: Path, env: dict[str, str], *, said: Path | None = None
    ) -> None:
        self.args = ["rlexp", *arguments]
        self._folder = tempfile.TemporaryDirectory()
        self._out, self._err = (said or Path(self._folder.name) / name for name in ("out", "err"))
        for path in (self._out, self._err):
            path.touch()
        self._process = _context.Process(
            target=_child, args=(list(arguments), str(cwd), env, str(self._out), str(self._err))
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """:raises subprocess.TimeoutExpired: when it takes longer"""
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0, *self.said())
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end; return what was printed."""
        self.wait(timeout)
        return self.said()

    def said(self) -> tuple[str, str]:
        return self._out.read_text(), self._err.read_text()


def run(
    arguments: Sequence[str], cwd: Path, env: dict[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run ``rlexp`` with these arguments to its end.

    :raises subprocess.TimeoutExpired: when it takes too long; it is killed
    """
    process = Forked(arguments, cwd, env)
    try:
        code = process.wait(timeout)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return subprocess.CompletedProcess(process.args, code, *process.said())


def _child(arguments: list[str], cwd: str, env: dict[str, str], out: str, err: str) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = ["rlexp", *arguments]
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, out, _WRITE), (2, err, _WRITE)):
        handle = os.open(path, flags, 0o600)
        os.dup2(handle, number)
        os.close(handle)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode) for n, mode in ((0, "r"), (1, "w"), (2, "w")))
    paths = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path]
    sys.path[:0] = paths
    from wandb.sdk.data_types._private import MEDIA_TMP

    from rlexp.cli import main

    Path(MEDIA_TMP.name).mkdir(exist_ok=True)  # made on import, removed when an earlier child ended
    code = 1
    try:
        code = main()
    finally:
        atexit._run_exitfuncs()  # multiprocessing leaves them out
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


_WRITE = os.O_WRONLY | os.O_CREAT | os.O_APPEND
