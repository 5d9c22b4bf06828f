"""Spaces as JSON, and in one line for people."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

Array = npt.NDArray[Any]


def space_to_json(space: spaces.Space[Any]) -> dict[str, Any]:
    """Describe a space in JSON values.

    :raises ValueError: when it is none of those that the file format knows
    """
    if isinstance(space, spaces.Dict):
        return {"kind": "Dict", "spaces": {key: space_to_json(part) for key, part in space.spaces.items()}}
    if isinstance(space, spaces.Box):
        bounds = {"low": _bound_to_json(space.low), "high": _bound_to_json(space.high)}
        return {"kind": "Box", "shape": list(space.shape), "dtype": _dtype(space), **bounds}
    if isinstance(space, spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start), "dtype": _dtype(space)}
    if isinstance(space, spaces.MultiDiscrete):
        start = np.broadcast_to(space.start, space.nvec.shape).tolist()
        return {"kind": "MultiDiscrete", "n": space.nvec.tolist(), "start": start, "dtype": _dtype(space)}
    if isinstance(space, spaces.MultiBinary):
        n = int(space.n) if isinstance(space.n, int | np.integer) else [int(size) for size in space.n]
        return {"kind": "MultiBinary", "n": n}
    raise ValueError(f"demonstrations of {type(space).__name__} spaces cannot be kept")


def space_from_json(described: dict[str, Any]) -> spaces.Space[Any]:
    """Return the space that :func:`space_to_json` described.

    :raises ValueError: when there is no such kind of space
    """
    kind = described["kind"]
    if kind == "Dict":
        return spaces.Dict({key: space_from_json(part) for key, part in described["spaces"].items()})
    if kind == "Box":
        dtype, shape = np.dtype(described["dtype"]), tuple(described["shape"])
        low, high = (_bound_from_json(described[key], dtype, shape) for key in ("low", "high"))
        return spaces.Box(low, high, shape, dtype.type)
    if kind == "Discrete":
        dtype = np.dtype(described["dtype"])
        return spaces.Discrete(described["n"], start=described["start"], dtype=dtype.type)
    if kind == "MultiDiscrete":
        dtype = np.dtype(described["dtype"])
        return spaces.MultiDiscrete(described["n"], dtype=dtype.type, start=described["start"])
    if kind == "MultiBinary":
        return spaces.MultiBinary(described["n"])
    raise ValueError(f"there is no kind of space called '{kind}'")


def _dtype(space: spaces.Space[Any]) -> str:
    return str(np.dtype(space.dtype))


def _bound_to_json(bound: Array) -> Any:
    """A number where all entries are alike, else nested lists; infinities as text, which JSON has no number for."""
    if bound.size and (bound == bound.flat[0]).all():
        return _finite(bound.flat[0].item())
    return {"values": [_finite(value) for value in bound.ravel().tolist()]}


def _finite(value: float) -> float | str:
    return str(value) if value in (float("inf"), float("-inf")) else value


def _bound_from_json(given: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    if isinstance(given, dict):
        return np.array([float(v) if isinstance(v, str) else v for v in given["values"]], dtype).reshape(
            shape
        )
    return np.full(shape, float(given) if isinstance(given, str) else given, dtype)


def describe_space(space: spaces.Space[Any]) -> str:
    """Return a space in one short line, however large its bounds are."""
    if isinstance(space, spaces.Dict):
        return "{" + ", ".join(f"{key}: {describe_space(part)}" for key, part in space.spaces.items()) + "}"
    if isinstance(space, spaces.Box):
        low, high = space.low.min(initial=0), space.high.max(initial=0)
        return f"{_dtype(space)} {tuple(space.shape)} from {low} to {high}"
    return str(space)
