"""Exact state: everything a run needs to go on as if nothing had happened, as arrays and JSON.

A checkpoint is a folder ``checkpoints/<timesteps>/`` with ``state.json`` (the tree) and ``arrays.npz`` (its leaves;
every member carries a checksum). It is written under another name and renamed when it is complete. Nothing in it is
ever unpickled.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.save_util import recursive_getattr, recursive_setattr

STATE = "state.json"
ARRAYS = "arrays.npz"

_COUNTERS = (
    "num_timesteps",
    "_n_updates",
    "_episode_num",
    "_current_progress_remaining",
    "_total_timesteps",
    "_num_timesteps_at_start",
)
_CARRIED = ("_last_obs", "_last_original_obs", "_last_episode_starts", "_last_lstm_states")
_REPLAY_ARRAYS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be read."""


# --------------------------------------------------------------------------------------------------- files


def save(root: Path, state: dict[str, Any], timesteps: int, keep: int) -> Path:
    """Write one checkpoint atomically and drop all but the last ones.

    :param root: the run's ``checkpoints`` folder
    :param state: tree of dictionaries, lists, arrays, tensors and JSON values
    :param timesteps: names the checkpoint
    :param keep: how many stay
    """
    final = root / f"{timesteps:012d}"
    if (
        final.exists()
    ):  # the same step again, e.g. an interrupt right after a resume: nothing has changed since
        return final
    temporary = root / f".{final.name}.{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    tree = _encode(state, arrays, "state")
    with (temporary / ARRAYS).open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
        _to_disk(file)
    with (temporary / STATE).open("w", encoding="utf-8") as file:
        json.dump(tree, file)
        _to_disk(file)
    temporary.rename(final)
    _sync_folder(root)
    for old in available(root)[keep:]:
        shutil.rmtree(old, ignore_errors=True)
    for unfinished in root.glob(".*"):
        shutil.rmtree(unfinished, ignore_errors=True)
    return final


def available(root: Path) -> list[Path]:
    """Return the complete checkpoints, newest first."""
    return sorted((path for path in root.glob("[0-9]*") if path.is_dir()), reverse=True)


def load(folder: Path) -> dict[str, Any]:
    """Read one checkpoint.

    :raises CheckpointError: when it is truncated or corrupted
    """
    try:
        tree = json.loads((folder / STATE).read_text(encoding="utf-8"))
        with np.load(folder / ARRAYS, allow_pickle=False) as archive:
            state = _decode(tree, archive)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{folder}: {error}") from error
    assert isinstance(state, dict)
    return state


def load_newest(root: Path) -> tuple[Path, dict[str, Any]] | None:
    """Read the newest checkpoint that is intact, warning of every damaged one; None when there is none."""
    for folder in available(root):
        try:
            return folder, load(folder)
        except CheckpointError as error:
            warnings.warn(
                f"damaged checkpoint skipped, falling back to the one before: {error}", stacklevel=2
            )
            folder.rename(folder.with_name(f"damaged-{folder.name}"))
    return None


def _to_disk(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# ---------------------------------------------------------------------------------------- trees of arrays and JSON


def _encode(value: Any, arrays: dict[str, np.ndarray[Any, Any]], path: str) -> Any:
    if isinstance(value, th.Tensor):
        arrays[path] = value.detach().cpu().numpy()
        return {"__tensor__": path}
    if isinstance(value, (np.ndarray, np.generic)):
        arrays[path] = np.asarray(value)
        return {"__array__": path}
    if isinstance(value, dict):
        items = [[key, _encode(item, arrays, f"{path}.{key}")] for key, item in value.items()]
        if all(isinstance(key, str) for key, _ in items):
            return dict(items)
        return {"__items__": items}
    if isinstance(value, (list, tuple)):
        encoded = [_encode(item, arrays, f"{path}.{index}") for index, item in enumerate(value)]
        return {"__tuple__": encoded} if isinstance(value, tuple) else encoded
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{path}: a checkpoint cannot hold a {type(value).__name__}")


def _decode(value: Any, archive: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item, archive) for item in value]
    if not isinstance(value, dict):
        return value
    if "__tensor__" in value:
        return th.from_numpy(archive[value["__tensor__"]])
    if "__array__" in value:
        return archive[value["__array__"]]
    if "__tuple__" in value:
        return tuple(_decode(item, archive) for item in value["__tuple__"])
    if "__items__" in value:
        return {key: _decode(item, archive) for key, item in value["__items__"]}
    return {key: _decode(item, archive) for key, item in value.items()}


# ------------------------------------------------------------------------------------------------- the algorithm


def capture(model: BaseAlgorithm) -> dict[str, Any]:
    """Return the complete state of an algorithm and its environments at a safe point (``on_rollout_start``).

    An algorithm with state beyond Stable-Baselines3's adds it through ``checkpoint_state() -> dict`` and takes it back
    through ``load_checkpoint_state(dict)``.
    """
    assert model.env is not None
    modules, variables = model._get_torch_save_params()
    state: dict[str, Any] = {
        "modules": {name: recursive_getattr(model, name).state_dict() for name in modules},
        "variables": {name: recursive_getattr(model, name) for name in variables},
        "counters": {name: getattr(model, name) for name in _COUNTERS},
        "carried": {name: _plain(getattr(model, name, None)) for name in _CARRIED},
        "episodes": [dict(info) for info in model.ep_info_buffer or ()],
        "successes": [float(success) for success in model.ep_success_buffer or ()],
        "pending_metrics": _pending_metrics(model),
        "envs": model.env.env_method("get_replay_state"),
        "random": _random_state(model),
    }
    replay = getattr(model, "replay_buffer", None)
    if isinstance(replay, ReplayBuffer):
        own = getattr(
            replay, "checkpoint_state", None
        )  # a buffer with state beyond Stable-Baselines3's brings it
        state["replay"] = _capture_replay(replay) if own is None else own()
    if hasattr(model, "checkpoint_state"):
        state["own"] = model.checkpoint_state()
    return state


def restore(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    """Put a captured state into a freshly built algorithm of the same configuration.

    :raises CheckpointError: when a task does not arrive where it was, i.e. is not decided by its random state
    """
    assert model.env is not None
    for name, module in state["modules"].items():
        recursive_getattr(model, name).load_state_dict(module)
    for name, variable in state["variables"].items():
        recursive_setattr(model, f"{name}.data", variable.to(model.device))
    for name, value in state["counters"].items():
        setattr(model, name, value)
    for name, value in state["carried"].items():
        if value is not None:
            setattr(model, name, _like(getattr(model, name, None), value))
    _restore_windows(model, state)
    _replay_episodes(model, state)
    if "replay" in state:
        replay: Any = model.replay_buffer  # type: ignore[attr-defined]
        own = getattr(replay, "load_checkpoint_state", None)
        _restore_replay(replay, state["replay"]) if own is None else own(state["replay"])
    if "own" in state:
        model.load_checkpoint_state(state["own"])  # type: ignore[attr-defined]
    _restore_random_state(model, state["random"])


def _plain(value: Any) -> Any:
    """Named tuples become plain ones; they come back in the shape of the attribute that receives them."""
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _like(template: Any, value: Any) -> Any:
    if isinstance(value, tuple) and hasattr(template, "_fields"):
        return type(template)(*value)
    return value


def _restore_windows(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    from collections import deque

    model.ep_info_buffer = deque(state["episodes"], maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(state["successes"], maxlen=model._stats_window_size)


def _replay_episodes(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    assert model.env is not None
    arrived = [
        model.env.env_method("set_replay_state", one, indices=[index])[0]
        for index, one in enumerate(state["envs"])
    ]
    expected = state["carried"]["_last_obs"]
    for index, observation in enumerate(arrived):
        rows = (
            [(observation[key], expected[key][index]) for key in expected]
            if isinstance(expected, dict)
            else [(observation, expected[index])]
        )
        # Wrappers outside the episode's own (frame stacks, image transposition) change what the model sees.
        comparable = all(np.shape(found) == np.shape(wanted) for found, wanted in rows)
        if comparable and not all(np.array_equal(found, wanted) for found, wanted in rows):
            raise CheckpointError(
                "the task did not arrive where it was: it is not decided by its random state alone"
            )


def _pending_metrics(model: BaseAlgorithm) -> dict[str, Any]:
    if not hasattr(model, "_logger"):
        return {}
    logger = model.logger
    return {
        "values": {key: _number(value) for key, value in logger.name_to_value.items()},
        "counts": dict(logger.name_to_count),
        "excluded": {key: list(value) for key, value in logger.name_to_excluded.items()},
    }


def restore_pending_metrics(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    """Put back what had been recorded but not yet dumped; needs the logger to be set."""
    pending = state["pending_metrics"]
    model.logger.name_to_value.update(pending.get("values", {}))
    model.logger.name_to_count.update(pending.get("counts", {}))
    model.logger.name_to_excluded.update(
        {key: tuple(value) for key, value in pending.get("excluded", {}).items()}
    )


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _random_state(model: BaseAlgorithm) -> dict[str, Any]:
    name, keys, position, has_gauss, gauss = np.random.get_state()
    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": (name, np.asarray(keys), int(position), int(has_gauss), float(gauss)),
        "torch": th.get_rng_state(),
        "action_space": model.action_space.np_random.bit_generator.state,
    }
    if th.cuda.is_available():
        state["cuda"] = th.cuda.get_rng_state_all()
    return state


def _restore_random_state(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    th.set_rng_state(state["torch"])
    model.action_space.np_random.bit_generator.state = state["action_space"]
    if "cuda" in state and th.cuda.is_available():
        th.cuda.set_rng_state_all(state["cuda"])


def _capture_replay(buffer: ReplayBuffer) -> dict[str, Any]:
    filled = buffer.buffer_size if buffer.full else buffer.pos
    state: dict[str, Any] = {"pos": buffer.pos, "full": buffer.full}
    for name in _REPLAY_ARRAYS:
        array = getattr(buffer, name, None)
        if isinstance(array, dict):
            state[name] = {key: part[:filled] for key, part in array.items()}
        elif array is not None:
            state[name] = array[:filled]
    return state


def _restore_replay(buffer: ReplayBuffer, state: dict[str, Any]) -> None:
    buffer.pos, buffer.full = state["pos"], state["full"]
    for name in _REPLAY_ARRAYS:
        saved = state.get(name)
        if isinstance(saved, dict):
            for key, part in saved.items():
                getattr(buffer, name)[key][: len(part)] = part
        elif saved is not None:
            getattr(buffer, name)[: len(saved)] = saved
