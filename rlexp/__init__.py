"""rlexp: a command-line experiment runner for reinforcement-learning research.

The algorithms are importable without Hydra in sight: ``from rlexp import LCPO``.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "ACER": "rlexp.algos.acer",
    "DQN": "rlexp.algos.dqn",
    "LCPO": "rlexp.algos.lcpo",
    "MaskableLCPO": "rlexp.algos.lcpo",
    "TAM": "rlexp.algos.tam",
}

__all__ = ["__version__", *sorted(_EXPORTS)]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        import importlib

        return getattr(importlib.import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'rlexp' has no attribute '{name}'")
