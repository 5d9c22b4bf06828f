"""Trees of dictionaries, lists, arrays and tensors as JSON beside named arrays; nothing is ever unpickled."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import numpy as np
import torch as th

from rlexp.errors import UsageError
from rlexp.system.archives import announced, open_stored

Array = np.ndarray[Any, Any]
_TREE = "tree"


def encode(value: Any, arrays: dict[str, Array], path: str = "state") -> Any:
    """Return a tree as JSON values that name its arrays.

    :param arrays: takes the arrays, by their path in the tree
    :raises TypeError: when a leaf is neither an array, a tensor nor a JSON value
    """
    if isinstance(value, th.Tensor):
        arrays[path] = value.detach().cpu().numpy()
        return {"__tensor__": path}
    if isinstance(value, (np.ndarray, np.generic)):
        arrays[path] = np.asarray(value)
        return {"__array__": path}
    if isinstance(value, dict):
        items = [[key, encode(item, arrays, f"{path}.{key}")] for key, item in value.items()]
        if all(isinstance(key, str) for key, _ in items):
            return dict(items)
        return {"__items__": items}
    if isinstance(value, (list, tuple)):
        encoded = [encode(item, arrays, f"{path}.{index}") for index, item in enumerate(value)]
        return {"__tuple__": encoded} if isinstance(value, tuple) else encoded
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{path}: a checkpoint cannot hold a {type(value).__name__}")


def decode(value: Any, arrays: Mapping[str, Array]) -> Any:
    """Return the tree that :func:`encode` took apart."""
    if isinstance(value, list):
        return [decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if "__tensor__" in value:
        return th.from_numpy(arrays[value["__tensor__"]])
    if "__array__" in value:
        return arrays[value["__array__"]]
    if "__tuple__" in value:
        return tuple(decode(item, arrays) for item in value["__tuple__"])
    if "__items__" in value:
        return {key: decode(item, arrays) for key, item in value["__items__"]}
    return {key: decode(item, arrays) for key, item in value.items()}


def write(file: str | Path | BufferedIOBase, value: Any) -> None:
    """Write a tree into one file of NumPy's (``.npz``), whatever its name ends with; folders are made.

    :raises TypeError: when it holds something else than arrays, tensors and JSON values
    """
    arrays: dict[str, Array] = {}
    tree = json.dumps(encode(value, arrays))
    arrays[_TREE] = np.frombuffer(tree.encode(), np.uint8)
    if not isinstance(file, (str, Path)):
        np.savez(file, allow_pickle=False, **arrays)
        return
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as opened:
        np.savez(opened, allow_pickle=False, **arrays)


def read(file: str | Path | BufferedIOBase) -> Any:
    """Read a tree that :func:`write` wrote.

    :raises UsageError: when it is not one
    :raises FileNotFoundError: when there is none
    """
    try:
        if isinstance(file, (str, Path)):
            with Path(file).open("rb") as opened:
                announced(open_stored(opened))
        with np.load(file, allow_pickle=False) as archive:
            return decode(json.loads(archive[_TREE].tobytes()), archive)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, IndexError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"{file}: not a file that save_replay_buffer wrote") from error
