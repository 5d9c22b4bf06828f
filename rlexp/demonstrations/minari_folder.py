"""Demonstrations as a Minari dataset, in the layout of Minari 0.5, our own and those of other people::

    <folder>/data/metadata.json     spaces, environment, algorithm, author, numbers of episodes and steps; ours also
                                    hold the header of an .npz file, under "rlexp"
    <folder>/data/main_data.hdf5    a group episode_<i> for each, in it observations (T + 1, ...), actions, rewards,
                                    terminations and truncations (T, ...); a dictionary is a group of arrays

Minari writes it. It does not read it: Minari builds the environment that the metadata name when they name no spaces,
and HDF5 follows links out of the file and allocates whatever a file announces.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from rlexp.demonstrations import header as headers
from rlexp.demonstrations.dataset import DAMAGE, Array, Demonstrations
from rlexp.demonstrations.minari_arrays import read_episodes
from rlexp.demonstrations.space_serialization import describe_space, space_from_json, space_from_minari
from rlexp.errors import UsageError, first_line
from rlexp.system import files
from rlexp.system.extras import require

METADATA = "data/metadata.json"
_DATA = "main_data.hdf5"
_OURS = "rlexp"  # in the metadata
_ID = re.compile(r"(?:[-\w][-\w/]*[-\w]/)?[-\w]+-v\d+")
_METADATA_BYTES = 64 * 2**20


# ------------------------------------------------------------------------------------------------------------- places


def by_id(name: str) -> Path:
    """Return the folder of a dataset that Minari knows by its id, e.g. ``D4RL/door/human-v2``.

    :raises UsageError: when there is none on this machine; nothing is downloaded
    """
    top = _datasets_path()
    if _ID.fullmatch(name) and (top / name / METADATA).is_file():
        return top / name
    known = (
        f", and no Minari dataset of that id in {top} (MINARI_DATASETS_PATH)" if _ID.fullmatch(name) else ""
    )
    raise UsageError(f"{name}: no such file or folder of demonstrations{known}; rlexp demos records one")


def check_target(path: Path) -> None:
    """Reject a folder that cannot become a Minari dataset, or that holds anything else.

    :raises UsageError: saying why
    """
    for package in ("h5py", "minari"):
        require(package, "demos", f"output={path}")
    if path.is_symlink() or (path.exists() and not _is_replaceable(path)):
        raise UsageError(f"output: {path} is not a Minari dataset and nothing else; it is not replaced")


def _is_replaceable(path: Path) -> bool:
    return path.is_dir() and os.listdir(path) == ["data"] and (path / METADATA).is_file()  # noqa: PTH208


def _datasets_path() -> Path:
    return Path(os.environ.get("MINARI_DATASETS_PATH") or Path.home() / ".minari" / "datasets")


def _id_of(path: Path) -> str:
    """Return the id of a dataset in a folder: its place among Minari's, or its name, with a version."""
    place, top = path.absolute(), _datasets_path().absolute()
    name = place.relative_to(top).as_posix() if place.is_relative_to(top) else place.name
    name = re.sub(r"[^-\w/]+", "-", name)
    return name if _ID.fullmatch(name) else f"{name}-v0"


# ------------------------------------------------------------------------------------------------------------ writing


def write(path: Path, demonstrations: Demonstrations) -> None:
    """Write the dataset so that a kill at any moment leaves the old one, the new one or none.

    :raises ValueError: when an episode does not fit the spaces or is not complete
    """
    check_target(path)
    header, _ = headers.describe(demonstrations)
    path = path.absolute()  # Minari measures the size of its folder by absolute paths only
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, previous = (
        path.with_name(f".{path.name}.{prefix}{os.getpid()}") for prefix in ("", "previous-")
    )
    try:
        (temporary / "data").mkdir(parents=True)
        _fill(temporary / "data", demonstrations, header, _id_of(path))
        for file in (temporary / "data").iterdir():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
        if path.exists():
            path.rename(previous)
        temporary.rename(path)
    finally:
        if previous.exists() and not path.exists():
            previous.rename(path)
        for folder in (temporary, previous):
            shutil.rmtree(folder, ignore_errors=True)


def _fill(folder: Path, demonstrations: Demonstrations, header: dict[str, Any], name: str) -> None:
    from minari.data_collector import EpisodeBuffer
    from minari.dataset.minari_storage import MinariStorage

    provenance = demonstrations.provenance
    told = {
        "dataset_id": name,
        "minari_version": importlib.metadata.version("minari"),
        "algorithm_name": _expert(provenance),
        "author": {f"rlexp {importlib.metadata.version('rlexp')}"},
        "description": str(provenance.get("command", "")),
        "env_spec": demonstrations.env_spec,
        "code_permalink": _permalink(),
        _OURS: header,
    }
    seeds = provenance.get("episode_seeds", [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storage = MinariStorage.new(
            folder,
            demonstrations.observation_space,
            demonstrations.action_space,
            jpeg_encoding=False,  # JPEG would change what was observed
        )
        storage.update_metadata({key: value for key, value in told.items() if value is not None})
        storage.update_episodes(
            EpisodeBuffer(
                seed=int(seeds[number]) if len(seeds) == len(demonstrations) else None,
                observations=episode.observations,
                actions=episode.actions,
                rewards=episode.rewards,
                terminations=_flags(len(episode), episode.terminated),
                truncations=_flags(len(episode), episode.truncated),
                infos={},
            )
            for number, episode in enumerate(demonstrations.episodes)
        )


def _flags(length: int, last: bool) -> Array:
    flags = np.zeros(length, np.bool_)
    flags[-1] = last
    return flags


def _expert(provenance: dict[str, Any]) -> str:
    expert = provenance.get("expert")
    return str(expert.get("algo", expert.get("kind"))) if isinstance(expert, dict) else str(expert)


def _permalink() -> str | None:
    """Return where the code lies, as the package says; None: it does not."""
    urls = importlib.metadata.metadata("rlexp").get_all("Project-URL") or []
    return urls[0].partition(", ")[2] if urls else None


# ------------------------------------------------------------------------------------------------------------ reading


def read(path: Path) -> Demonstrations:
    """Read a dataset; no environment is built, no link is followed, nothing is unpickled.

    :param path: its folder, or the folder ``data`` in it
    :raises UsageError: in one line, when it is damaged or holds what no algorithm here learns from
    """
    metadata = _metadata(path)
    require("h5py", "demos", f"demonstrations {path}")
    ours = metadata.get(_OURS)
    if ours is not None:
        headers.check(ours, path)
    try:
        observation_space, action_space = _spaces(metadata)
        env_spec = metadata.get("env_spec")
        with files.open_file(_data_folder(path) / _DATA, "rb", below=path) as file:
            episodes = read_episodes(file, observation_space, action_space)
        if len(episodes) != metadata.get("total_episodes"):
            raise ValueError(f"{len(episodes)} episodes, {metadata.get('total_episodes')} were announced")
        found = Demonstrations(
            episodes,
            observation_space,
            action_space,
            _provenance(metadata),
            None if ours is None else str(ours["checksum"]),
            env_spec if isinstance(env_spec, str) else None,
        )
        mismatch = found.mismatch()
        is_changed = (
            ours is not None and not mismatch and not headers.is_bound(ours, headers.describe(found)[1])
        )
    except UsageError:
        raise
    except DAMAGE as error:
        raise UsageError(f"{path}: demonstrations that cannot be understood ({first_line(error)})") from error
    if mismatch:
        raise UsageError(f"{path}: demonstrations that cannot be used: {mismatch}")
    if is_changed:
        raise UsageError(f"{path}: damaged demonstrations, the checksum does not fit the content")
    return found


def read_header(path: Path) -> dict[str, Any]:
    """Read what a dataset says of itself, without its episodes and without checking them.

    :raises UsageError: as :func:`read`
    """
    metadata = _metadata(path)
    try:
        return {"provenance": _provenance(metadata)}
    except DAMAGE as error:
        raise UsageError(f"{path}: demonstrations that cannot be understood ({first_line(error)})") from error


def _metadata(path: Path) -> dict[str, Any]:
    """Read the metadata of a dataset, wherever below ``path`` Minari has put them."""
    file = _data_folder(path) / "metadata.json"
    try:
        metadata = json.loads(files.read_text(file, _METADATA_BYTES, below=path))
    except FileNotFoundError as error:
        raise UsageError(f"{path}: not a Minari dataset, it has no {METADATA}") from error
    except UsageError:
        raise
    except DAMAGE as error:
        raise UsageError(f"{file}: cannot be read ({first_line(error)})") from error
    if not isinstance(metadata, dict):
        raise UsageError(f"{file}: not the metadata of a Minari dataset")
    if metadata.get("data_format", "hdf5") != "hdf5":
        raise UsageError(f"{path}: a Minari dataset in {metadata['data_format']} files, hdf5 can be read")
    return metadata


def _data_folder(path: Path) -> Path:
    return path if (path / "metadata.json").exists() else path / "data"


def _spaces(metadata: dict[str, Any]) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    ours = metadata.get(_OURS)
    if ours is not None:  # more exact: Minari drops the kind of number of a Discrete
        return space_from_json(ours["observation_space"]), space_from_json(ours["action_space"])
    for key in ("observation_space", "action_space"):
        if key not in metadata:
            raise ValueError(f"the metadata have no {key}")
    observations, actions = (
        space_from_minari(json.loads(metadata[f"{key}_space"])) for key in ("observation", "action")
    )
    parts = list(observations.values()) if isinstance(observations, spaces.Dict) else [observations]
    for what, space in (*(("observations", part) for part in parts), ("actions", actions)):
        if isinstance(space, spaces.Dict | spaces.Tuple):
            raise ValueError(f"{what} are {describe_space(space)}, which nothing here learns from")
    return observations, actions


def _provenance(metadata: dict[str, Any]) -> dict[str, Any]:
    if _OURS in metadata:
        return dict(metadata[_OURS]["provenance"])
    described = json.loads(metadata.get("env_spec") or "{}")
    return {
        "dataset": str(metadata.get("dataset_id")),
        "env_id": str(described["id"]) if "id" in described else None,
        "expert": {"kind": str(metadata.get("algorithm_name"))},
        "episodes": metadata.get("total_episodes"),
        "steps": metadata.get("total_steps"),
    }
