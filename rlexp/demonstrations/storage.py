"""Where demonstrations are read from and written to: the path picks the format.

A path that ends in ``.npz`` is one file of ours (:mod:`rlexp.demonstrations.npz_file`); any other is the folder of a
Minari dataset (:mod:`rlexp.demonstrations.minari_folder`) or its id. ``.npz`` is the default because it is small and
always the same: 100 episodes of UnlockPickup are 23 kB, the same bytes every time, and 2.6 MB as a Minari dataset.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

from rlexp.demonstrations import minari_folder, npz_file
from rlexp.demonstrations.dataset import Demonstrations
from rlexp.errors import UsageError

_NPZ = ".npz"


def read(path: str | os.PathLike[str]) -> Demonstrations:
    """Read demonstrations.

    :param path: an ``.npz`` file, the folder of a Minari dataset, or the id of one below ``MINARI_DATASETS_PATH``;
        nothing is downloaded
    :raises UsageError: in one line, when there are none, or they are cut off, damaged or something else
    """
    module, found = _located(path)
    demonstrations: Demonstrations = module.read(found)
    return demonstrations


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what demonstrations say of themselves, without the episodes and without checking them.

    :raises UsageError: as :func:`read`
    """
    module, found = _located(path)
    header: dict[str, Any] = module.read_header(found)
    return header


def write(path: str | os.PathLike[str], demonstrations: Demonstrations) -> None:
    """Write demonstrations in the format that the path picks; a kill at any moment leaves nothing half done there.

    :raises ValueError: when an episode does not fit the spaces or is not complete
    """
    (npz_file if Path(path).suffix == _NPZ else minari_folder).write(Path(path), demonstrations)


def check_target(path: Path, force: bool) -> None:
    """Reject a place that demonstrations cannot be written to, before they are recorded.

    :param force: replace demonstrations that are there; anything else is never replaced
    :raises UsageError: saying why
    """
    if path.suffix == _NPZ:
        if path.is_dir():
            raise UsageError(f"output: {path} is a folder")
    elif path.suffix:
        raise UsageError(
            f"output: '{path}' given, the name must end in .npz, or in nothing: the folder of a Minari dataset"
        )
    else:
        minari_folder.check_target(path)
    if path.exists() and not force:
        raise UsageError(f"output: {path} exists; force=true replaces it")


def stored_in(folder: Path) -> list[Path]:
    """Return what looks like demonstrations in a folder, by name."""
    datasets = (path.parents[1] for path in folder.glob(f"*/{minari_folder.METADATA}"))
    return sorted([*folder.glob(f"*{_NPZ}"), *datasets])


def _located(given: str | os.PathLike[str]) -> tuple[ModuleType, Path]:
    path = Path(given)
    if path.suffix == _NPZ or path.is_file():
        return npz_file, path
    return minari_folder, path if path.is_dir() else minari_folder.by_id(str(given))
