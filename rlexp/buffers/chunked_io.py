"""Large arrays in chunks, so that restoring a checkpoint needs little more memory than the arrays themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

CHUNK_BYTES = 1 << 26


def chunks(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Return views of consecutive rows.

    :param array: ``(n, ...)``
    :return: views ``(k, ...)``, none much larger than :data:`CHUNK_BYTES` unless a single row is
    """
    rows = max(1, CHUNK_BYTES // max(1, array[:1].nbytes))
    return (array[begin : begin + rows] for begin in range(0, len(array), rows))


def restore_chunks(array: npt.NDArray[Any], saved: list[npt.NDArray[Any]]) -> None:
    """Copy chunks into the beginning of an array, releasing each as soon as it is copied.

    :param array: ``(n, ...)``
    :param saved: chunks in order; empty afterwards
    :raises ValueError: when a chunk has another dtype or shape; numpy would cast or broadcast it silently
    """
    begin = 0
    while saved:
        chunk = saved.pop(0)
        if chunk.dtype != array.dtype or chunk.shape[1:] != array.shape[1:]:
            raise ValueError(f"{chunk.dtype}{chunk.shape} saved, the buffer has {array.dtype}{array.shape}")
        array[begin : begin + len(chunk)] = chunk
        begin += len(chunk)
