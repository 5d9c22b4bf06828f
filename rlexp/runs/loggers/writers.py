"""Metric rows: one dictionary per ``logger.dump``, the same for every destination."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from stable_baselines3.common.logger import KVWriter

from rlexp.errors import NonFiniteError
from rlexp.runs.folder import JsonlWriter

# Clocks and counters of one attempt: they differ between a resumed and an uninterrupted run.
_CLOCKS = ("time/iterations", "time/fps", "time/time_elapsed", "time/total_timesteps", "time/episodes")


class Sink(Protocol):
    """A destination of metric rows."""

    def log(self, row: dict[str, Any]) -> None:
        """Take one row.

        :param row: numbers by name, ``timesteps`` and ``episodes`` among them
        """


class FileSink:
    """A JSONL file as a destination of metric rows."""

    def __init__(self, writer: JsonlWriter) -> None:
        self._writer = writer

    def log(self, row: dict[str, Any]) -> None:
        """Append one row."""
        self._writer.append(row)


class RowWriter(KVWriter):
    """Turns what the algorithm logs into rows and passes them on.

    :param sinks: where rows go
    :param position: returns the run's timesteps and episodes
    :raises NonFiniteError: in :meth:`write`, when a metric is NaN or infinite
    """

    def __init__(self, sinks: Sequence[Sink], position: Callable[[], dict[str, int]]) -> None:
        self._sinks = sinks
        self._position = position
        self._started = time.perf_counter()

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        """Pass one row to every sink; the arguments are those of ``KVWriter``."""
        values = {key: _scalar(value) for key, value in key_values.items() if key not in _CLOCKS}
        numbers = {key: value for key, value in values.items() if value is not None}
        for key, value in numbers.items():
            # An explained variance of NaN only means that all returns were equal.
            if not math.isfinite(value) and key != "train/explained_variance":
                raise NonFiniteError(f"{key} is {value} at step {step}")
        finite = {key: value for key, value in numbers.items() if math.isfinite(value)}
        row = {**self._position(), **finite, "wall_s": round(time.perf_counter() - self._started, 3)}
        for sink in self._sinks:
            sink.log(row)

    def close(self) -> None:
        """Nothing to close: the sinks belong to the run."""


def _scalar(value: Any) -> float | int | None:
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, np.generic) and np.issubdtype(value.dtype, np.number):
        number = value.item()
        return number if isinstance(number, (int, float)) else None
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return _scalar(value.item())
    return None
