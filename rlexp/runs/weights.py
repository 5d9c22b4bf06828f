"""Reading ``model.zip``: the weights and the plain numbers in it, whatever the archive's origin.

Stable-Baselines3 stores the members of its archives uncompressed, and so does torch within each of them. An archive
that claims otherwise, or more than its own size, is rejected before anything is unpacked. Nothing is unpickled:
``torch.load`` reads tensors alone, and of Stable-Baselines3's attributes only what stands as JSON is looked at.
"""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import torch as th
from stable_baselines3.common.save_util import recursive_getattr

from rlexp.errors import UsageError
from rlexp.runs import folder as run_folder
from rlexp.runs import normalization
from rlexp.system.archives import open_stored
from rlexp.system.files import open_file


def load_weights(model: Any, path: Path, device: str = "auto") -> dict[str, Any]:
    """Give a model the weights of an archive; those of its optimizers are left out.

    :param model: built with the configuration of the saved one
    :param path: ``model.zip`` in a run folder
    :param device: where the weights go
    :return: what the archive says of the model's attributes in plain JSON
    :raises UsageError: when the archive is damaged or of another model, or holds anything that rlexp never writes; the
        model must not be used then
    """
    try:
        with open_file(path, "rb") as file, open_stored(file) as archive:
            modules = {
                name: module
                for name in model._get_torch_save_params()[0]
                if isinstance(module := recursive_getattr(model, name), th.nn.Module)
            }
            states = {name: _tensors(archive.read(f"{name}.pth"), device) for name in modules}
            attributes = json.loads(archive.read("data"))
        if isinstance(attributes, dict):
            _check_spaces(model, attributes, path)
        for name, module in modules.items():
            module.load_state_dict(states[name])
        if not isinstance(attributes, dict):
            raise ValueError("attributes are no object")
    except UsageError:
        raise
    except Exception as error:  # damaged bytes make every layer below fail in its own way
        reason = " ".join((str(error).splitlines() or [""])[0].split())
        raise UsageError(
            f"{path}: damaged, or of another model ({type(error).__name__}: {reason})"
        ) from error
    for name, parameter in model.policy.named_parameters():
        if not bool(th.isfinite(parameter).all()):
            raise UsageError(f"{path}: damaged, parameter {name} is not finite")
    return attributes


def initialize(model: Any, folder: Path, device: str = "auto") -> dict[str, Any]:
    """Give an untrained model the weights with which another run ended.

    :param folder: of that run
    :return: the entry ``init_from`` of the record
    :raises UsageError: when it has no trained policy, or one of other spaces or networks
    """
    archive = folder / "model.zip"
    if not archive.is_file():
        raise UsageError(f"init_from: {folder}: no trained policy (model.zip is missing)")
    try:
        load_weights(model, archive, device)
    except UsageError as error:
        raise UsageError(f"init_from: {error}") from error
    _load_statistics(model, folder)
    return {"run": str(folder.resolve()), "model_sha256": run_folder.sha256(archive)}


def _load_statistics(model: Any, folder: Path) -> None:
    """Give a model the statistics of observations and rewards with which the other run ended.

    :raises UsageError: when only one of the two normalises them, or not the same ones
    """
    normalizer = model.get_vec_normalize_env()
    if normalizer is None and (folder / normalization.FILE).exists():
        raise UsageError(
            f"init_from: {folder}: trained on normalised observations or rewards; set normalize.* as that run did"
        )
    if normalizer is not None:
        try:
            normalization.load(normalizer, folder)
        except UsageError as error:
            raise UsageError(f"init_from: {error}") from error


def _check_spaces(model: Any, attributes: dict[str, Any], path: Path) -> None:
    """Compare what an archive says of its spaces in plain JSON with those of the model that is to receive it.

    :raises UsageError: naming the space that is another
    """
    for name in ("observation_space", "action_space"):
        space, saved = getattr(model, name), attributes.get(name)
        if not isinstance(saved, dict):
            continue
        kind = str(saved.get(":type:")).rpartition(".")[2].rstrip("'>")
        mine: Any = getattr(space, "n", None)
        theirs: Any = saved.get("n")
        if not hasattr(space, "n"):
            mine, theirs = list(space.shape or ()), saved.get("_shape")
        if kind != type(space).__name__ or (theirs is not None and str(mine) != str(theirs)):
            raise UsageError(
                f"{path}: trained with another {name.replace('_', ' ')}: {kind}({theirs}), not "
                f"{type(space).__name__}({mine})"
            )


def _tensors(content: bytes, device: str) -> dict[str, th.Tensor]:
    file = io.BytesIO(content)
    open_stored(file)
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of an odd pickle before it rejects it
        found = th.load(file, map_location="cpu" if device == "auto" else device, weights_only=True)
    if not isinstance(found, dict) or not all(isinstance(value, th.Tensor) for value in found.values()):
        raise ValueError("no tensors by name")
    return found
