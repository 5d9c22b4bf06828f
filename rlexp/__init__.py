"""rlexp: a command-line experiment runner for reinforcement-learning research.

The algorithms are importable without Hydra in sight: ``from rlexp import LCPO``. ``rlexp.train`` trains a run as the
command line does, ``rlexp.load_run`` reads one back.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

__version__ = "0.1.0"


_API = {
    "load_run": "rlexp.api:load_run",
    "train": "rlexp.api:train",
    "LoadedRun": "rlexp.api:LoadedRun",
    "UsageError": "rlexp.errors:UsageError",
    "RunFailed": "rlexp.errors:RunFailed",
}


def _algorithms() -> dict[str, str]:
    """Return where the class of each built-in algorithm is, by its name."""
    from rlexp.registry import algos

    specs = [spec for spec in algos().values() if spec.trains]
    targets = [target for spec in specs for target in (spec.target, spec.masked_target) if target is not None]
    return {target.partition(":")[2]: target for target in targets if target.startswith(f"{__name__}.algos.")}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return ["__version__", *_API, *sorted(_algorithms())]
    if name in _API or (name[0].isupper() and name in _algorithms()):
        from rlexp.registry import load

        return load(_API[name] if name in _API else _algorithms()[name])
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*globals(), *_API, *sorted(_algorithms())]


class _WithGymnasium:
    """Registers our environments when gymnasium is imported; to import it here would slow every command down."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "gymnasium" else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            importlib.import_module("rlexp.envs.registration")

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


if "gymnasium" in sys.modules:
    importlib.import_module("rlexp.envs.registration")
else:
    sys.meta_path.insert(0, _WithGymnasium)
