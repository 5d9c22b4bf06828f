"""The command line in a process forked from one that has imported everything, which takes most of a short command."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.forked_imports"])


def run(
    arguments: Sequence[str], cwd: Path, env: dict[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run ``rlexp`` with these arguments to its end.

    :raises subprocess.TimeoutExpired: when it takes too long; it is killed
    """
    with tempfile.TemporaryDirectory() as name:
        out, err = Path(name) / "out", Path(name) / "err"
        process = _context.Process(target=_child, args=(list(arguments), str(cwd), env, str(out), str(err)))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["rlexp", *arguments], timeout, out.read_text(), err.read_text())
        code = process.exitcode
        process.close()
        return subprocess.CompletedProcess(["rlexp", *arguments], code, out.read_text(), err.read_text())


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


_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
