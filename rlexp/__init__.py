"""rlexp: a command-line experiment runner for reinforcement-learning research.

The algorithms are importable without Hydra in sight: ``from rlexp import LCPO``.
"""

from __future__ import annotations

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
        import importlib

        return getattr(importlib.import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'rlexp' has no attribute '{name}'")
