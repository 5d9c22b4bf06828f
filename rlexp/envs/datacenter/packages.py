"""What is needed from packages outside: the engine, and a package whose data files alone are read."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from rlexp.errors import UsageError

ENGINE, MODELS = "pyenergyplus", "sinergym"
HOW = {
    ENGINE: "pip install 'rlexp[energy]' (Linux on x86-64 only; elsewhere env.backend=surrogate runs)",
    MODELS: "python -m rlexp.envs.datacenter.fetch installs it (its data files are read, it is never imported)",
}


def data_folder(package: str) -> Path:
    """Return the ``data`` folder of an installed package without importing it.

    :raises UsageError: when it is not installed, saying how to install it
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(f"env=datacenter: {package} is not installed; {HOW[package]}")
    return Path(next(iter(spec.submodule_search_locations))) / "data"


def require_engine() -> None:
    """Validate that the engine and its building model are installed.

    :raises UsageError: saying how to install what is missing
    """
    if find_spec(ENGINE) is None:
        raise UsageError(f"backend: {ENGINE} is not installed; {HOW[ENGINE]}")
    if find_spec(MODELS) is None:
        raise UsageError(f"backend: the engine's building model is not installed; {HOW[MODELS]}")
