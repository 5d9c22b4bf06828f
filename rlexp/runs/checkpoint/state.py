"""The exact state of an algorithm and its environments: captured, validated, restored."""

from __future__ import annotations

import math
import random
from collections import deque
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.save_util import recursive_getattr, recursive_setattr

from rlexp.demonstrations import sde_noise
from rlexp.runs import normalization
from rlexp.runs.checkpoint.files import CheckpointError

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

NOT_CAPTURED = {
    "_logger": "made by the run; what it has not written yet is captured as pending_metrics",
    "rollout_buffer": "emptied when a rollout begins, which is where checkpoints are taken",
    "start_time": "set by learn(), read for speeds only",
}
"""Attributes of Stable-Baselines3's algorithms that change in ``learn`` and that resuming does not need."""


def capture(model: BaseAlgorithm) -> dict[str, Any]:
    """Return the complete state of an algorithm and its environments at a rollout boundary (``on_rollout_start``).

    An algorithm with state beyond Stable-Baselines3's adds it through ``checkpoint_state() -> dict`` and restores it
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
        # A buffer with state beyond Stable-Baselines3's captures itself.
        own = getattr(replay, "checkpoint_state", None)
        state["replay"] = _capture_replay(replay) if own is None else own()
    if hasattr(model, "checkpoint_state"):
        state["own"] = model.checkpoint_state()
    if (normalizer := model.get_vec_normalize_env()) is not None:
        state["normalization"] = normalization.capture(normalizer)
    if (noise := sde_noise.capture(model)) is not None:
        state["sde_noise"] = noise
    return state


def restore(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    """Restore a captured state into a newly built algorithm of the same configuration.

    After an error the algorithm must not be used: build it again.

    :param model: newly built
    :param state: from :func:`capture`
    :raises CheckpointError: when the state does not belong to this algorithm and these environments, or an environment
        does not reach its former state, since it does not depend on its random state alone
    """
    assert model.env is not None
    _validate(model, state)
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
    if (normalizer := model.get_vec_normalize_env()) is not None:
        normalization.restore(normalizer, state["normalization"])
    if "replay" in state:
        replay: Any = model.replay_buffer  # type: ignore[attr-defined]
        own = getattr(replay, "load_checkpoint_state", None)
        _restore_replay(replay, state["replay"]) if own is None else own(state["replay"])
    if "own" in state:
        model.load_checkpoint_state(state["own"])  # type: ignore[attr-defined]
    restore_random_state(model, state)


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
    model.ep_info_buffer = deque(state["episodes"], maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(state["successes"], maxlen=model._stats_window_size)


def _replay_episodes(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    assert model.env is not None
    arrived = [
        model.env.env_method("set_replay_state", one, indices=[index])[0]
        for index, one in enumerate(state["envs"])
    ]
    expected = state.get("normalization", {}).get("last_observations", state["carried"]["_last_obs"])
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
                "the environment did not reach its former state: it does not depend on its random state alone"
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
    """Restore the metrics that were recorded but not yet written.

    :param model: with its logger set
    :param state: from :func:`capture`
    """
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


def restore_random_state(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    """Restore all random generators that training uses.

    :param model: whose action space has its own generator
    :param state: from :func:`capture`
    """
    saved = state["random"]
    random.setstate(saved["python"])
    np.random.set_state(saved["numpy"])
    th.set_rng_state(saved["torch"])
    model.action_space.np_random.bit_generator.state = saved["action_space"]
    if "sde_noise" in state:
        sde_noise.restore(model, state["sde_noise"])
    if "cuda" in saved and th.cuda.is_available():
        th.cuda.set_rng_state_all(saved["cuda"])


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


# ----------------------------------------------------------------------------------------------------- validation


def _validate(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    """Compare a state with the algorithm that is to receive it: torch and numpy would cast or broadcast silently."""
    modules, variables = model._get_torch_save_params()
    _require(state["modules"].keys() == set(modules), "modules are not those of the algorithm")
    _require(state["variables"].keys() == set(variables), "variables are not those of the algorithm")
    for name in modules:
        mine, saved = recursive_getattr(model, name), state["modules"][name]
        if isinstance(mine, th.optim.Optimizer):
            _validate_optimizer(name, mine, saved)
            continue
        expected = mine.state_dict()
        _require(saved.keys() == expected.keys(), f"{name}: parameters are not those of the algorithm")
        for key, tensor in expected.items():
            _validate_tensor(f"{name}.{key}", saved[key], tensor)
    for name in variables:
        _validate_tensor(name, state["variables"][name], recursive_getattr(model, name))
    _require(state["counters"].keys() == set(_COUNTERS), "counters are missing")
    for name, value in state["counters"].items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        _require(number, f"{name} is {value!r}")
    _require(state["carried"].keys() == set(_CARRIED), "carried attributes are missing")
    normalizer = model.get_vec_normalize_env()
    _require(("normalization" in state) == (normalizer is not None), "statistics of observations and rewards")
    if normalizer is not None:
        problem = normalization.problem(normalizer, state["normalization"])
        _require(problem is None, f"normalization: {problem}")
    _require(("sde_noise" in state) == bool(getattr(model, "use_sde", False)), "state-dependent noise")
    normalizes = normalizer is not None and normalizer.norm_obs
    _validate_observations(model, state["carried"]["_last_obs"], np.float32 if normalizes else None)
    _require(len(state["envs"]) == model.n_envs, f"{len(state['envs'])} environments, not {model.n_envs}")
    for key in ("values", "counts", "excluded") if state["pending_metrics"] else ():
        _require(isinstance(state["pending_metrics"][key], dict), f"pending metrics: {key}")
    replay = getattr(model, "replay_buffer", None)
    _require(("replay" in state) == isinstance(replay, ReplayBuffer), "replay buffer")
    _require(("own" in state) == hasattr(model, "checkpoint_state"), "the algorithm's own state")
    if isinstance(replay, ReplayBuffer) and not hasattr(replay, "load_checkpoint_state"):
        _validate_replay(replay, state["replay"])


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise CheckpointError(f"does not fit: {problem}")


def _validate_tensor(name: str, saved: Any, expected: th.Tensor) -> None:
    alike = isinstance(saved, th.Tensor) and (saved.shape, saved.dtype) == (expected.shape, expected.dtype)
    _require(alike, f"{name} is not {expected.dtype} {tuple(expected.shape)}")
    _require(bool(th.isfinite(saved).all()), f"{name} is not finite")


def _validate_optimizer(name: str, optimizer: th.optim.Optimizer, saved: dict[str, Any]) -> None:
    expected = optimizer.state_dict()
    groups, wanted = saved["param_groups"], expected["param_groups"]
    _require(
        [(group.keys(), group["params"]) for group in groups]
        == [(group.keys(), group["params"]) for group in wanted],
        f"{name}: parameter groups are not those of the algorithm",
    )
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for index, values in saved["state"].items():
        for key, value in values.items():
            if isinstance(value, th.Tensor) and value.dim() > 0:
                _validate_tensor(f"{name}.{index}.{key}", value, parameters[index])


def _validate_observations(model: BaseAlgorithm, saved: Any, dtype: Any) -> None:
    space = model.observation_space
    parts = space.spaces.items() if isinstance(space, spaces.Dict) else [(None, space)]
    for key, part in parts:
        array = saved if key is None else saved[key]
        shape = (model.n_envs, *(part.shape or ()))
        _require(
            isinstance(array, np.ndarray) and (array.shape, array.dtype) == (shape, dtype or part.dtype),
            f"last observation{'' if key is None else f' {key}'} is not {dtype or part.dtype} {shape}",
        )


def _validate_replay(buffer: ReplayBuffer, saved: dict[str, Any]) -> None:
    filled = buffer.buffer_size if saved["full"] else saved["pos"]
    _require(isinstance(filled, int) and 0 <= saved["pos"] <= buffer.buffer_size, "replay buffer: position")
    for name in _REPLAY_ARRAYS:
        mine, theirs = getattr(buffer, name, None), saved.get(name)
        _require((mine is None) == (theirs is None), f"replay buffer: {name}")
        targets = mine if isinstance(mine, dict) else {} if mine is None else {"": mine}
        for key, target in targets.items():
            array = theirs[key] if isinstance(mine, dict) else theirs  # type: ignore[index]
            wanted = (filled, *target.shape[1:]), target.dtype
            _require((array.shape, array.dtype) == wanted, f"replay buffer: {name} is not {wanted}")  # type: ignore[union-attr]
