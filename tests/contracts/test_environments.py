"""Copies of every environment of the registry behave like the original, or say in one line what to do instead."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.vec_env import SubprocVecEnv

from rlexp import registry
from rlexp.testing import check_environment, toy_environments

_OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "restaurant": {"plain": {}, "masks": {"masks": True}, "transcript": {"render_mode": "ansi"}},
    "blind_cliffwalk": {"": {"n_states": 4, "layout_seed": 0}},
    "minatar": {"breakout": {"game": "breakout"}, "seaquest": {"game": "seaquest"}},
    "pendulum_p": {"": {"observed": "positions"}},
    "pendulum_v": {"": {"observed": "velocities", "reward_seen": True}},
    "cartpole_p": {
        "": {"observed": "positions"},
        "discrete": {"observed": "positions", "actions": "discrete"},
    },
    "cartpole_v": {"": {"observed": "velocities"}},
    "minigrid": {"": {"id": "MiniGrid-UnlockPickup-v0", "mission_length": 5}},
    "repeat_previous": {"": {"decks": 1, "k": 4}},
    "autoencode": {"": {"decks": 1}},
    "datacenter": {
        "surrogate": {"backend": "surrogate", "days": 2},
        "engine": {"backend": "engine", "days": 1},
    },
    "gym": {"cartpole": {"id": "CartPole-v1"}, "pendulum": {"id": "Pendulum-v1"}},
    "atari": {"pong": {"id": "pong"}},
}
_NO_COPIES = ("atari-pong", "datacenter-engine")
_CASES = [
    pytest.param(name, options, f"{name}-{label}" not in _NO_COPIES, id=f"{name}-{label}")
    for name, variants in _OPTIONS.items()
    for label, options in variants.items()
]


def _make(name: str, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    env: gymnasium.Env[Any, Any] = registry.load(registry.env(name).target)(**options)
    return env


def test_every_environment_is_checked() -> None:
    assert set(_OPTIONS) == set(registry.envs())


@pytest.mark.parametrize(("name", "options", "copies"), _CASES)
def test_copies(name: str, options: dict[str, Any], copies: bool) -> None:
    check_environment(lambda: _make(name, options), copies=copies)


@pytest.mark.parametrize("kind", ["vector", "image", "dict"])
def test_the_tasks_of_the_contracts_keep_them(kind: str) -> None:
    for actions in ("discrete", "continuous"):
        check_environment(toy_environments.make(kind, actions))
    check_environment(toy_environments.make(kind, masked=True))


def test_a_built_environment_in_a_process_of_its_own() -> None:
    env, twin = _make("restaurant", {}), _make("restaurant", {})
    apart = SubprocVecEnv([lambda: env], start_method="fork")
    apart.seed(3)
    seen = [apart.reset()[0], *(apart.step(np.array([action]))[0][0] for action in (0, 1, 2))]
    apart.close()
    expected = [twin.reset(seed=3)[0], *(twin.step(action)[0] for action in (0, 1, 2))]
    assert all(np.array_equal(one, other) for one, other in zip(seen, expected, strict=True))


class _Frozen(gymnasium.Env[Any, Any]):
    """Its copies show what the original showed when it was copied."""

    observation_space: Any = spaces.Box(0, 100, (1,), np.float32)
    action_space: Any = spaces.Discrete(2)

    def __init__(self) -> None:
        self._buffer = bytearray(4)
        self._view = np.frombuffer(self._buffer, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._buffer[:] = np.float32(0).tobytes()
        return self._view.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._buffer[:] = np.float32(self._view[0] + 1).tobytes()
        return self._view.copy(), 0.0, False, False, {}


def test_a_frozen_copy_is_found() -> None:
    with pytest.raises(AssertionError, match=r"copy by copy\.deepcopy differ"):
        check_environment(_Frozen)
