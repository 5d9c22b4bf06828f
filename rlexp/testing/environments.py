"""Contracts of environments: what gymnasium and Stable-Baselines3 do with one, our own can do with it, too."""

from __future__ import annotations

import copy
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import gymnasium
import numpy as np

from rlexp.testing.cases import ContractError, require, same

MakeEnv = Callable[[], gymnasium.Env[Any, Any]]


def check_environment(make_env: MakeEnv, steps: int = 12, copies: bool = True) -> None:
    """Put an environment through its contracts: episodes follow from the seed and the actions, in copies, too.

    :param make_env: builds the environment
    :param steps: to compare; the copy is made after half as many
    :param copies: whether ``copy.deepcopy`` and ``pickle`` are expected to work; False: they are expected to raise a
        TypeError of one line that says what to do instead
    :raises ContractError: naming what is broken
    """
    first, second = make_env(), make_env()
    try:
        same(_play(first, steps, seed=3), _play(second, steps, seed=3), "two environments with the same seed")
        for how, duplicate in (("copy.deepcopy", copy.deepcopy), ("pickle", _pickled)):
            _play(first, steps // 2, seed=4)
            if not copies:
                _says_what_to_do(first, how, duplicate)
                continue
            twin = duplicate(first)
            try:
                expected = _play(first, steps)
                same(expected, _play(twin, steps), f"an environment and its copy by {how}")
                moved = [_play(one, steps, seed=5) for one in (first, twin)]
                same(moved[0], moved[1], f"an environment and its copy by {how}, begun again")
            finally:
                twin.close()
    finally:
        first.close()
        second.close()


def _play(env: gymnasium.Env[Any, Any], steps: int, seed: int | None = None) -> list[Any]:
    """Return the observations; without a seed the current episode continues. Actions are always the same."""
    trajectory: list[Any] = [env.reset(seed=seed)[0]] if seed is not None else []
    env.action_space.seed(7)
    for _ in range(steps):
        observation, reward, terminated, truncated, info = env.step(_action(env))
        trajectory.append([observation, float(reward), terminated, truncated, _values(info)])
        if terminated or truncated:
            trajectory.append(env.reset()[0])
    return copy.deepcopy(trajectory)


def _action(env: gymnasium.Env[Any, Any]) -> Any:
    if not env.has_wrapper_attr("action_masks") or not isinstance(
        env.action_space, gymnasium.spaces.Discrete
    ):
        return env.action_space.sample()
    return env.action_space.sample(mask=np.asarray(env.get_wrapper_attr("action_masks")(), dtype=np.int8))


def _values(info: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in info.items() if isinstance(value, (bool, int, float, str, np.ndarray))
    }


def _pickled(env: Any) -> Any:
    # As processes of vectorised environments exchange them; nothing is read from a file.
    return ForkingPickler.loads(ForkingPickler.dumps(env))


def _says_what_to_do(env: Any, how: str, duplicate: Callable[[Any], Any]) -> None:
    try:
        duplicate(env)
    except TypeError as error:
        text = str(error)
        require(
            len(text.splitlines()) == 1 and "function that builds" in text,
            f"{how} fails without saying what to do instead: {text.splitlines()[0]}",
        )
    else:
        raise ContractError(f"{how} works, though it is declared not to")
