"""Whether two runs have learned and written the same, clocks left out."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

_FILES = ("metrics.jsonl", "evaluations.jsonl")


def differences(one: Path, other: Path) -> list[str]:
    """Return what differs between two finished run folders, bit for bit."""
    found = [
        f"{name}: {len(_rows(one / name))} and {len(_rows(other / name))} rows, not the same"
        for name in _FILES
        if _rows(one / name) != _rows(other / name)
    ]
    first, second = _weights(one / "model.zip"), _weights(other / "model.zip")
    if first != second:
        names = [name for name in first.keys() | second.keys() if first.get(name) != second.get(name)]
        found.append(f"model.zip: {names[0]} and {len(names) - 1} others differ")
    return found


def _rows(path: Path) -> list[Any]:
    rows = []
    for line in path.read_text().splitlines():
        row = json.loads(line)
        clocks = [key for key in row if key == "wall_s" or key.startswith(("time/", "perf/"))]
        rows.append({key: value for key, value in row.items() if key not in clocks})
    return rows


def _weights(path: Path) -> dict[str, bytes]:
    import torch as th

    found = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not name.endswith(".pth") or "variables" in name:
                continue
            tree = th.load(io.BytesIO(archive.read(name)), weights_only=True, map_location="cpu")
            for key, value in _leaves(tree, name):
                found[key] = value.numpy().tobytes() if isinstance(value, th.Tensor) else repr(value).encode()
    return found


def _leaves(tree: Any, path: str) -> list[tuple[str, Any]]:
    if isinstance(tree, dict):
        return [leaf for key, part in tree.items() for leaf in _leaves(part, f"{path}.{key}")]
    if isinstance(tree, (list, tuple)):
        return [leaf for key, part in enumerate(tree) for leaf in _leaves(part, f"{path}.{key}")]
    return [(path, tree)]
