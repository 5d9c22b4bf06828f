"""Episodes of several environments stepped together, one forward pass for all, no generator of a training disturbed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch as th
from gymnasium import spaces

from rlexp.demonstrations import sde_noise

Env = gymnasium.Env[Any, Any]
Choose = Callable[[list[Env], list[int], Any, np.ndarray[Any, Any], np.ndarray[Any, Any]], list[Any]]
"""``choose(envs, playing, observations, starts, rewards) -> actions``: one action per environment.

``playing`` holds the indices of the environments whose episode has not ended; actions of the others are not used.
``observations`` are stacked, ``(n_envs, ...)``; ``starts`` ``(n_envs,)`` marks first steps of episodes; ``rewards``
``(n_envs,)`` came with the observations, 0 at an episode's start.
"""


class Transition(NamedTuple):
    """One step of one environment.

    :param episode: number of the episode, which is that of its seed
    :param observation: after the step
    """

    episode: int
    observation: Any
    action: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


def play(
    envs: list[Env], choose: Choose, seeds: list[int], begin: Callable[[int, Any], None] | None = None
) -> Iterator[Transition]:
    """Play one episode for every seed; the next one begins in whichever environment is free.

    :param envs: at most as many as seeds
    :param seeds: of the episodes
    :param begin: called with each episode's number and first observation
    """
    n = len(envs)
    waiting = iter(range(n, len(seeds)))
    playing = list(range(n))  # the episode of each environment, -1 when none is left
    observations = [env.reset(seed=seeds[k])[0] for k, env in enumerate(envs)]
    if begin is not None:
        for k, observation in enumerate(observations):
            begin(k, observation)
    rewards = np.zeros(n)
    starts = np.ones(n, dtype=bool)
    active = list(range(n))
    while active:
        actions = choose(envs, active, stack(observations, envs[0].observation_space), starts, rewards)
        starts = np.zeros(n, dtype=bool)
        for k in active:
            observation, reward, terminated, truncated, info = envs[k].step(actions[k])
            rewards[k] = float(reward)
            yield Transition(
                playing[k], observation, actions[k], float(reward), bool(terminated), bool(truncated), info
            )
            if terminated or truncated:
                rewards[k], starts[k] = 0.0, True
                playing[k] = next(waiting, -1)
                if playing[k] >= 0:
                    observation = envs[k].reset(seed=seeds[playing[k]])[0]
                    if begin is not None:
                        begin(playing[k], observation)
            observations[k] = observation
        active = [k for k in active if playing[k] >= 0]


def by_model(model: Any, deterministic: bool, masked: bool) -> Choose:
    """Let an algorithm choose.

    :param model: anything with Stable-Baselines3's ``predict``; one with a ``VecNormalize`` is given observations as
        that normalises them now
    :param deterministic: its most probable action; else a sampled one
    :param masked: whether the environment masks actions and the policy reads the masks
    """
    state: Any = None
    normalizer = getattr(model, "get_vec_normalize_env", lambda: None)()
    # The previous reward may be an input, as in R2D2.
    reads_rewards = getattr(model, "reads_rewards", False)

    def choose(
        envs: list[Env],
        playing: list[int],
        observations: Any,
        starts: np.ndarray[Any, Any],
        rewards: np.ndarray[Any, Any],
    ) -> list[Any]:
        nonlocal state
        extra: dict[str, Any] = {"rewards": rewards} if reads_rewards else {}
        if masked:
            extra["action_masks"] = _masks(envs, playing)
        if normalizer is not None:
            observations = normalizer.normalize_obs(observations)
        actions, state = model.predict(
            observations, state=state, episode_start=starts, deterministic=deterministic, **extra
        )
        return actions.tolist() if actions.ndim == 1 else list(actions)

    return choose


def _masks(envs: list[Env], playing: list[int]) -> np.ndarray[Any, Any]:
    masks = [np.asarray(env.get_wrapper_attr("action_masks")()) for env in envs]
    return np.stack([mask if k in playing else np.ones_like(mask) for k, mask in enumerate(masks)])


def stack(observations: list[Any], space: spaces.Space[Any]) -> Any:
    """Return one batch: an array ``(n_envs, ...)``, or a dictionary of such arrays."""
    if isinstance(space, spaces.Dict):
        return {key: np.stack([observation[key] for observation in observations]) for key in space.spaces}
    return np.stack(observations)


@contextmanager
def isolated_random_state(seed: int, model: Any = None) -> Iterator[None]:
    """Seed every global generator and the model's own ones for a while, and put each back as it was found.

    :param seed: of all of them, at least 0
    :param model: whose generators those of its attributes are, and those of its policy's; None: global ones only
    """
    python_state, numpy_state = random.getstate(), np.random.get_state()
    bit_generators = _bit_generators(model)
    own_states = [generator.state for generator in bit_generators]
    with th.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed % 2**32)
        th.manual_seed(seed)
        for generator in bit_generators:
            generator.state = type(generator)(seed).state
        noise = sde_noise.capture(model)
        if noise is not None:
            model.policy.reset_noise()
        try:
            yield
        finally:
            if noise is not None:
                sde_noise.restore(model, noise)
            random.setstate(python_state)
            np.random.set_state(numpy_state)
            for generator, state in zip(bit_generators, own_states, strict=True):
                generator.state = state


def _bit_generators(model: Any) -> list[Any]:
    """Return NumPy's bit generators that a model or its policy draws from; a space samples with one of its own."""
    found: dict[int, Any] = {}
    for owner in (model, getattr(model, "policy", None)):
        for value in getattr(owner, "__dict__", {}).values():
            generator = value.np_random if isinstance(value, spaces.Space) else value
            if isinstance(generator, np.random.Generator):
                found[id(generator.bit_generator)] = generator.bit_generator
    return list(found.values())
