"""The only module that imports numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Compile a kernel on its first call; the machine code is cached beside the source for later processes.

    Kernels do not check bounds: their callers do.

    :param function: restricted to what numba can compile
    """
    return cast(_Function, numba.njit(cache=True, nogil=True)(function))
