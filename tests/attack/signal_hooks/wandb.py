"""Stands in for Weights & Biases, so that its start can be paused."""

import os
from types import SimpleNamespace
from typing import Any

import pause

__version__ = "0"


def Settings(**_: Any) -> None:
    """Take any settings."""


def init(**_: Any) -> Any:
    """Return a run that takes everything."""
    if os.environ.get("RLEXP_PAUSE_AT") == "wandb":
        pause.pause()
    nothing = SimpleNamespace(update=lambda *_: None)
    settings = SimpleNamespace(log_user="none/debug.log")

    def take(*_: Any, **__: Any) -> None:
        pass

    return SimpleNamespace(
        define_metric=take, log=take, finish=take, summary=nothing, settings=settings, step=0
    )


def Table(**_: Any) -> Any:
    """Return a table that can be logged."""
    return SimpleNamespace(bind_to_run=lambda *_: None)


errors = SimpleNamespace(Error=RuntimeError)
