"""rlexp: a command-line experiment runner for reinforcement-learning research.

The algorithms are importable without Hydra in sight: ``from rlexp import LCPO``.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "A2C": "rlexp.algos.a2c",
    "ACER": "rlexp.algos.acer",
    "BC": "rlexp.algos.bc",
    "DQN": "rlexp.algos.dqn",
    "DQfD": "rlexp.algos.dqfd",
    "LCPO": "rlexp.algos.lcpo",
    "MaskableACER": "rlexp.algos.acer",
    "MaskableLCPO": "rlexp.algos.lcpo",
    "R2D2": "rlexp.algos.r2d2",
    "R2D3": "rlexp.algos.r2d3",
    "RecurrentPPO": "rlexp.algos.recurrent_ppo",
    "SACLSTM": "rlexp.algos.sac_lstm",
    "SLAC": "rlexp.algos.slac",
    "TAM": "rlexp.algos.tam",
}

__all__ = ["__version__", *sorted(_EXPORTS)]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'rlexp' has no attribute '{name}'")


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
            importlib.import_module("rlexp.envs")

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


if "gymnasium" in sys.modules:
    importlib.import_module("rlexp.envs")
else:
    sys.meta_path.insert(0, _WithGymnasium)
