"""From a config to what it configures: environments, the model, the evaluator."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from omegaconf import DictConfig, OmegaConf
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from rlexp import registry
from rlexp.algos.common.build import build
from rlexp.config import paths
from rlexp.config.env_arguments import env_arguments
from rlexp.envs.common.episode_replay import EpisodeReplay
from rlexp.envs.common.subprocess_vec_env import SubprocessVecEnv
from rlexp.envs.common.validate import ValidateOutputs
from rlexp.envs.common.wrappers import Controlled
from rlexp.runs.callbacks.track import Tracker
from rlexp.runs.evaluation import Evaluator
from rlexp.runs.normalization import normalized


def make_env(cfg: DictConfig, evaluation: bool = False, index: int = 0) -> gymnasium.Env[Any, Any]:
    """Build one environment, whose outputs are validated; stepped by its own controller where that is the algorithm.

    :param evaluation: whether a policy is measured on it, with the ``env.evaluation_*`` keys of the config
    :param index: its number among those stepped together, for messages
    """
    spec = registry.env(cfg.env.name)
    env: gymnasium.Env[Any, Any] = registry.load(spec.target)(**env_arguments(cfg, evaluation))
    name = f"{'evaluation ' if evaluation else ''}environment {index} ({cfg.env.get('id') or paths.env_label(cfg)})"
    env = ValidateOutputs(env, name, spec.metrics)
    controller = registry.algo(cfg.algo.name).controller
    return env if controller is None else Controlled(env, controller)


def is_masked(cfg: DictConfig) -> bool:
    """Return whether the environment masks actions from step to step."""
    return bool(cfg.env.get("masks", False))


def make_training_env(cfg: DictConfig) -> VecEnv:
    """Build the vectorised training environment."""

    def one(index: int) -> gymnasium.Env[Any, Any]:
        return EpisodeReplay(Monitor(make_env(cfg, index=index)))

    makers: list[Callable[[], gymnasium.Env[Any, Any]]] = [
        functools.partial(one, index) for index in range(cfg.hardware.n_envs)
    ]
    env = SubprocessVecEnv(makers) if cfg.hardware.vec_env == "subproc" else DummyVecEnv(makers)
    return normalized(env, cfg)


def make_model(cfg: DictConfig, env: VecEnv) -> Any:
    """Build the untrained algorithm."""
    container = OmegaConf.to_container(cfg.algo, resolve=True)
    assert isinstance(container, dict)
    settings = {str(key): value for key, value in container.items()}
    encoder = registry.env(cfg.env.name).encoder
    with warnings.catch_warnings():
        # The published batch of 16 does not divide the rollout of 100; the last minibatch is smaller, which is meant.
        warnings.filterwarnings("ignore", message="You have specified a mini-batch size")
        return build(
            registry.algo(cfg.algo.name),
            settings,
            env,
            cfg.seed,
            cfg.hardware.device,
            is_masked(cfg),
            encoder,
        )


def make_evaluator(cfg: DictConfig) -> Evaluator:
    """Build the evaluator; its episodes never depend on how training goes."""
    seed = cfg.evaluation.seed
    if seed is None:  # a stream of its own beside the training's
        seed = int(np.random.SeedSequence([cfg.seed, 0x6576616C]).generate_state(1)[0])
    numbers = itertools.count()
    spec, tracker = registry.env(cfg.env.name), make_tracker(cfg)
    return Evaluator(
        lambda: make_env(cfg, evaluation=True, index=next(numbers)),
        cfg.evaluation.episodes,
        cfg.evaluation.n_envs,
        seed,
        cfg.evaluation.deterministic,
        spec.metrics,
        is_masked(cfg),
        summarize=None if tracker is None else tracker.evaluation,
    )


def make_tracker(cfg: DictConfig) -> Tracker | None:
    """Build what collects more from the environment's infos than its metrics; None where it has no such thing."""
    target = registry.env(cfg.env.name).tracker
    tracker: Tracker | None = None if target is None else registry.load(target)()
    return tracker
