"""``python -m rlexp.envs.datacenter.fetch``: install the package whose building model and weather files are read.

It cannot be an ordinary dependency: only its data files are wanted, none of what it depends on, and newer versions of
pip reject its metadata even when nothing of that is to be installed. Where pip fails, uv does it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

REQUIREMENT = "sinergym==3.5.1"
_PACKAGE = "sinergym"


def _run(*command: str, **environment: str) -> str | None:
    """Run a command; return what went wrong, None when nothing did."""
    done = subprocess.run(
        command, env={**os.environ, **environment}, check=False, capture_output=True, text=True
    )
    return (
        f"{Path(command[0]).name} {command[3]}: {_last(done.stderr or done.stdout)}"
        if done.returncode
        else None
    )


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "failed"


def _index() -> dict[str, str]:
    """Return the package indexes of pip's configuration as uv's environment variables; uv does not read it."""
    asked = subprocess.run(
        [sys.executable, "-P", "-m", "pip", "config", "list"], check=False, capture_output=True, text=True
    )
    variables = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
    }
    found: dict[str, str] = {}
    for line in asked.stdout.splitlines():
        key, _, value = line.partition("=")
        name = variables.get(key.rpartition(".")[2])
        if name is not None:
            found.setdefault(name, value.strip("'\""))
    return {key: value for key, value in found.items() if key not in os.environ}


def main() -> int:
    """Install it, unless it is there.

    :return: exit code
    """
    if find_spec(_PACKAGE) is not None:
        return 0
    pip = (sys.executable, "-P", "-m", "pip", "--quiet", "--disable-pip-version-check")
    failure = _run(*pip, "install", "--no-deps", REQUIREMENT)
    if failure is None:
        return 0
    failed = None if find_spec("uv") is not None else _run(*pip, "install", "uv")
    if failed is None:
        uv = (
            sys.executable,
            "-P",
            "-m",
            "uv",
            "pip",
            "install",
            "--quiet",
            "--python",
            sys.executable,
            "--no-deps",
        )
        failed = _run(*uv, REQUIREMENT, **_index())
    if failed is None:
        return 0
    print(
        f"{failure}\n{failed}\nenv=datacenter needs the data files of {REQUIREMENT}; install it without its "
        f"dependencies: pip install --no-deps {REQUIREMENT}, or uv pip install --no-deps {REQUIREMENT}",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
