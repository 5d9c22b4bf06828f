"""Large arrays in pieces, so that restoring a checkpoint needs little more memory than what is restored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

CHUNK_BYTES = 1 << 26


def chunks(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Return views of consecutive rows, none much larger than :data:`CHUNK_BYTES`."""
    rows = max(1, CHUNK_BYTES // max(1, array[:1].nbytes))
    return (array[begin : begin + rows] for begin in range(0, len(array), rows))


def take_over(array: npt.NDArray[Any], pieces: list[npt.NDArray[Any]]) -> None:
    """Copy pieces into the beginning of an array, letting go of each as soon as it is copied.

    :raises ValueError: when a piece is not of the array's kind; numpy would cast or repeat it without a word
    """
    begin = 0
    while pieces:
        piece = pieces.pop(0)
        if piece.dtype != array.dtype or piece.shape[1:] != array.shape[1:]:
            raise ValueError(f"{piece.dtype}{piece.shape} saved, room is for {array.dtype}{array.shape}")
        array[begin : begin + len(piece)] = piece
        begin += len(piece)
