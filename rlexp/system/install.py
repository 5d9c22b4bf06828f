"""``python -m rlexp.system.install ARGUMENTS``: what ``pip install ARGUMENTS`` does, many times faster, through uv.

Needs nothing but the standard library: it makes the environment in which everything else runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

_PIP = (sys.executable, "-P", "-m", "pip", "--disable-pip-version-check")
_UV = (sys.executable, "-P", "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable)
# pip's settings, which uv does not read, as uv's environment variables
_VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
}


def install(*arguments: str) -> str | None:
    """Install packages into this interpreter's environment: with uv, and where uv cannot, with pip.

    :param arguments: as for ``pip install``; ``-c`` and ``-e`` are known to both
    :return: one line of each on what went wrong, None when nothing did
    """
    failed = None if find_spec("uv") is not None else _run(*_PIP, "install", "--quiet", "uv")
    if failed is None:
        failed = _run(*_UV, *arguments, **_settings_of_pip())
    if failed is None:
        return None
    failed_too = _run(*_PIP, "install", "--quiet", *arguments)
    return None if failed_too is None else f"uv: {failed}\npip: {failed_too}"


def _run(*command: str, **environment: str) -> str | None:
    done = subprocess.run(
        command, env={**os.environ, **environment}, check=False, capture_output=True, text=True
    )
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return (lines[-1] if lines else "failed") if done.returncode else None


def _settings_of_pip() -> dict[str, str]:
    asked = subprocess.run([*_PIP, "config", "list"], check=False, capture_output=True, text=True)
    found: dict[str, str] = {}
    for line in asked.stdout.splitlines():
        key, _, value = line.partition("=")
        name = _VARIABLES.get(key.rpartition(".")[2])
        if name is not None:
            found.setdefault(name, value.strip("'\"").replace("\\n", " ").strip())
    if (
        "UV_INDEX" in found
    ):  # pip asks all and takes the best version; uv would stop at the first that has any
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {key: value for key, value in found.items() if key not in os.environ}


if __name__ == "__main__":
    problem = install(*sys.argv[1:])
    if problem is not None:
        sys.exit(f"{Path(sys.executable).parent.parent} could not be set up\n{problem}")
