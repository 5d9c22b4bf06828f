"""Observations and rewards in units of their running statistics: Stable-Baselines3's ``VecNormalize``.

What it has seen belongs to the policy as the weights do: ``normalization.json`` lies beside ``model.zip``, plain
numbers that no reader has to unpickle, and a checkpoint holds the same together with what is carried from step to step.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from omegaconf import DictConfig
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from rlexp.errors import UsageError
from rlexp.system.files import read_text

FILE = "normalization.json"
_BYTES = 1 << 20


def normalized(env: VecEnv, cfg: DictConfig) -> VecEnv:
    """Wrap training environments as the config asks for.

    Rewards are discounted by the algorithm's own factor, as in RL-Zoo.

    :raises UsageError: when observations that are no vectors are to be normalised
    """
    chosen = cfg.get("normalize")  # not in the configs of older runs
    if chosen is None or not (chosen.observations or chosen.rewards):
        return env
    space = env.observation_space
    if chosen.observations and not (isinstance(space, spaces.Box) and len(space.shape) == 1):
        raise UsageError(
            "normalize.observations: true given, only observations that are vectors can be normalised"
        )
    return VecNormalize(env, norm_obs=chosen.observations, norm_reward=chosen.rewards, gamma=cfg.algo.gamma)


def normalized_like(model: Any, env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Wrap one environment so that it returns observations as a trained model reads them.

    :param model: with the statistics with which its run ended, which no longer change
    """
    normalizer = getattr(model, "get_vec_normalize_env", lambda: None)()
    if normalizer is None or not normalizer.norm_obs:
        return env
    limit = normalizer.clip_obs
    space = spaces.Box(-limit, limit, env.observation_space.shape, np.float32)
    return gymnasium.wrappers.TransformObservation(env, normalizer.normalize_obs, space)


def statistics(env: VecNormalize) -> dict[str, dict[str, Any]]:
    """Return what was seen so far, by ``observations`` and ``rewards``: mean, variance and count."""
    return {
        name: {"mean": np.array(one.mean), "variance": np.array(one.var), "count": float(one.count)}
        for name, one in _parts(env).items()
    }


def capture(env: VecNormalize) -> dict[str, Any]:
    """Return the complete state at a rollout boundary."""
    return {
        "statistics": statistics(env),
        "returns": env.returns,  # (n_envs,), discounted, of the episodes that are being played
        "last_observations": env.old_obs,  # (n_envs, ...), as the environments returned them
    }


def restore(env: VecNormalize, state: dict[str, Any]) -> None:
    """Restore what :func:`capture` returned."""
    _load(env, state["statistics"])
    env.returns = np.array(state["returns"])
    env.old_obs = state["last_observations"]


def problem(env: VecNormalize, state: dict[str, Any]) -> str | None:
    """Say why a captured state is not of these environments, None where it is."""
    if not isinstance(state, dict) or np.asarray(state.get("returns")).shape != env.returns.shape:
        return "returns"
    return _problem(env, state.get("statistics"))


def dumps(env: VecNormalize) -> str:
    """Return what ``normalization.json`` holds."""
    plain = {
        name: {key: np.asarray(value).tolist() for key, value in part.items()}
        for name, part in statistics(env).items()
    }
    return json.dumps(plain, indent=1) + "\n"


def load(env: VecNormalize, folder: Path) -> None:
    """Give environments the statistics with which a run ended.

    :param folder: of the run
    :raises UsageError: when they are missing, damaged or of other environments
    """
    path = folder / FILE
    if not path.is_file():
        raise UsageError(f"{path}: missing, the policy was trained on normalised observations or rewards")
    try:
        found = json.loads(read_text(path, _BYTES))
        wrong = _problem(env, found)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        wrong = type(error).__name__
    if wrong is not None:
        raise UsageError(f"{path}: damaged, or of another environment ({wrong})")
    _load(env, found)


def _parts(env: VecNormalize) -> dict[str, RunningMeanStd]:
    parts = {"rewards": env.ret_rms}
    if env.norm_obs:
        assert isinstance(env.obs_rms, RunningMeanStd)
        parts["observations"] = env.obs_rms
    return parts


def _problem(env: VecNormalize, found: Any) -> str | None:
    parts = _parts(env)
    if not isinstance(found, dict) or found.keys() != parts.keys():
        return f"it needs {' and '.join(parts)}"
    for name, mine in parts.items():
        for key, shape in (("mean", mine.mean.shape), ("variance", mine.var.shape), ("count", ())):
            value = np.asarray(found[name].get(key) if isinstance(found[name], dict) else None)
            if value.dtype.kind not in "fi" or value.shape != shape or not np.isfinite(value).all():
                return f"{name}.{key}"
        if np.min(found[name]["variance"]) < 0 or not math.isfinite(found[name]["count"]):
            return f"{name}.variance"
    return None


def _load(env: VecNormalize, found: dict[str, Any]) -> None:
    for name, mine in _parts(env).items():
        mine.mean, mine.var = (np.asarray(found[name][key], dtype=np.float64) for key in ("mean", "variance"))
        mine.count = float(found[name]["count"])
