"""Spaces as JSON, and in one line for people."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

Array = npt.NDArray[Any]

_DTYPES = {
    np.dtype(kind).name: np.dtype(kind)
    for kind in (bool, "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}
_MOST = 2**26  # numbers in an element of a Box: a file that names more is damaged


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
        dtype, shape = _dtype_from_json(described), _shape_from_json(described)
        low, high = (_bound_from_json(described[key], dtype, shape) for key in ("low", "high"))
        return spaces.Box(low, high, shape, dtype.type)
    if kind == "Discrete":
        dtype = _dtype_from_json(described)
        return spaces.Discrete(described["n"], start=described["start"], dtype=dtype.type)
    if kind == "MultiDiscrete":
        dtype = _dtype_from_json(described)
        return spaces.MultiDiscrete(described["n"], dtype=dtype.type, start=described["start"])
    if kind == "MultiBinary":
        return spaces.MultiBinary(described["n"])
    raise ValueError(f"there is no kind of space called '{kind}'")


def space_from_minari(described: Any) -> spaces.Space[Any]:
    """Return the space that Minari described in its metadata, without Minari.

    :raises ValueError: when there is no such kind of space, or what is said of it contradicts itself
    """
    kind = described["type"]
    if kind == "Dict":
        return spaces.Dict(
            {_key(key): space_from_minari(part) for key, part in described["subspaces"].items()}
        )
    if kind == "Tuple":
        return spaces.Tuple([space_from_minari(part) for part in described["subspaces"]])
    if kind == "Box":
        dtype, shape = _dtype_from_json(described), _shape_from_json(described)
        low, high = (np.array(described[key], dtype) for key in ("low", "high"))
        if low.shape != shape or high.shape != shape or not (low <= high).all():
            raise ValueError(f"bounds of a Box {shape} are {low.shape} and {high.shape}, or are no bounds")
        return spaces.Box(low, high, shape, dtype.type)
    if kind == "Discrete":
        return spaces.Discrete(described["n"], start=described["start"])
    if kind == "MultiDiscrete":
        start = described.get("start")  # Minari before 0.5 wrote none
        return spaces.MultiDiscrete(described["nvec"], dtype=_dtype_from_json(described).type, start=start)
    if kind == "MultiBinary":
        return spaces.MultiBinary(described["n"])
    raise ValueError(
        f"{kind} spaces are not supported; Box, Discrete, MultiDiscrete, MultiBinary, Dict and Tuple are"
    )


def _key(key: str) -> str:
    """Return a key of a dictionary, which is a name in an HDF5 file."""
    if not key or "/" in key or key.startswith("."):
        raise ValueError(f"'{key}' is no name of a part of an observation")
    return key


def _dtype_from_json(described: dict[str, Any]) -> np.dtype[Any]:
    name = described["dtype"]
    if name not in _DTYPES:
        raise ValueError(f"{name} is no kind of number; there are {', '.join(_DTYPES)}")
    return _DTYPES[name]


def _shape_from_json(described: dict[str, Any]) -> tuple[int, ...]:
    shape = tuple(described["shape"])
    if not all(isinstance(size, int) and size >= 0 for size in shape) or math.prod(shape) > _MOST:
        raise ValueError(f"{shape} is no shape of an array")
    return shape


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
