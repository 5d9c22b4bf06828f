"""Checks that the priority structures share, around kernels that check nothing themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def pairs(items: Any, values: Any, name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return items and their values as contiguous arrays.

    :param items: ``(n,)``
    :param values: ``(n,)``
    :param name: of a value, for the message
    :raises ValueError: when the shapes differ
    """
    items = np.ascontiguousarray(items, dtype=np.int64)
    values = np.ascontiguousarray(values, dtype=np.float64)
    if items.shape != values.shape or items.ndim != 1:
        raise ValueError(f"shapes {items.shape} and {values.shape} given, needs one {name} per item")
    return items, values


def raise_fault(fault: int, capacity: int, message: str) -> None:
    """Raise the error that a kernel has found.

    :param fault: 0: none, 1: an item is out of range, 2: a value is not allowed
    :param capacity: number of items
    :param message: for values that are not allowed
    """
    if fault == 1:
        raise IndexError(f"items must be at least 0 and less than {capacity}")
    if fault == 2:
        raise ValueError(message)


def check_range(begin: int, end: int, capacity: int) -> None:
    """Check that a range of items is inside a structure.

    :param begin: first item
    :param end: one past the last item
    :param capacity: number of items
    :raises IndexError: when it is not
    """
    if not 0 <= begin <= end <= capacity:
        raise IndexError(f"[{begin}, {end}) is not inside [0, {capacity})")
