"""The one door to numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Compile a kernel on its first call; the machine code is kept beside the source for the next process.

    Kernels check no bounds: whoever calls them does.
    """
    return cast(_Function, numba.njit(cache=True, nogil=True)(function))
