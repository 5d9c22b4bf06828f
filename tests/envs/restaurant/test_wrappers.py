"""Wrappers that any environment can wear, tried on this one."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rlexp.envs.common.wrappers import Controlled, EnabledActions
from rlexp.envs.restaurant.acts import parse_act
from rlexp.envs.restaurant.env import RestaurantEnv
from rlexp.envs.restaurant.summary import ACTIONS


def test_enabled_actions_are_numbered_without_the_disabled_ones() -> None:
    env = EnabledActions(RestaurantEnv(disabled_actions=("confirm_area", "repeat", "restart")))
    assert env.action_space == gymnasium.spaces.Discrete(13)
    assert env.action_names == tuple(
        name for name in ACTIONS if name not in ("confirm_area", "repeat", "restart")
    )
    for number, name in enumerate(env.action_names):
        assert ACTIONS[env.action(number)] == name
        assert env.action(np.int64(number)) == env.action(np.array(number)) == env.action(number)


def test_default_leaves_fourteen() -> None:
    env = EnabledActions(RestaurantEnv())
    assert env.action_space == gymnasium.spaces.Discrete(14)
    env.reset(seed=0)
    env.step(13)
    assert str(env.unwrapped.system_act) == "reqmore()"  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*different from the unwrapped version.*")
        check_env(EnabledActions(RestaurantEnv()), skip_render_check=True)


@pytest.mark.parametrize("action", [-1, 14])
def test_other_numbers_are_rejected(action: int) -> None:
    env = EnabledActions(RestaurantEnv())
    env.reset(seed=0)
    with pytest.raises(ValueError, match="from 0 to 13"):
        env.step(action)


def test_acts_pass_through() -> None:
    env = EnabledActions(RestaurantEnv())
    env.reset(seed=0)
    env.step(parse_act("request(food)"))
    assert str(env.unwrapped.system_act) == "request(food)"  # type: ignore[attr-defined]


def test_masks_of_enabled_actions() -> None:
    inner = RestaurantEnv(masks=True)
    env = EnabledActions(gymnasium.wrappers.RecordEpisodeStatistics(inner))
    env.reset(seed=0)
    mask = env.action_masks()
    assert mask.dtype == np.bool_ and mask.shape == (14,)
    enabled = [name for name, allowed in zip(env.action_names, mask, strict=True) if allowed]
    assert enabled == [name for name, allowed in zip(ACTIONS, inner.action_masks(), strict=True) if allowed]


def test_tasks_without_named_actions_are_rejected() -> None:
    with pytest.raises(ValueError, match="no numbered actions with names"):
        EnabledActions(gymnasium.make("CartPole-v1"))


def test_controlled_ignores_the_action() -> None:
    def play(env: gymnasium.Env[Any, Any], action: Any) -> list[str]:
        env.reset(seed=4)
        done, acts = False, []
        while not done:
            chosen = env.unwrapped.controller_action("handcrafted") if action is None else action  # type: ignore[attr-defined]
            _, _, terminated, truncated, _ = env.step(chosen)
            acts.append(str(env.unwrapped.system_act))  # type: ignore[attr-defined]
            done = terminated or truncated
        return acts

    expected = play(RestaurantEnv(), None)
    assert play(Controlled(RestaurantEnv(), "handcrafted"), 12) == expected
    assert play(Controlled(EnabledActions(RestaurantEnv()), "handcrafted"), 0) == expected


def test_unknown_controllers_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"controller='clever' .* handcrafted"):
        Controlled(RestaurantEnv(), "clever")
    with pytest.raises(ValueError, match="controller='handcrafted'"):
        Controlled(gymnasium.make("CartPole-v1"), "handcrafted")
