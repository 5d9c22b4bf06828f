"""The dialogue task as runs train on it: disabled actions left out, loops counted."""

from __future__ import annotations

from typing import Any

import gymnasium

from rlexp.envs.common.count_loops import CountLoops
from rlexp.envs.common.wrappers import EnabledActions
from rlexp.envs.restaurant.env import RestaurantEnv


def make(**options: Any) -> gymnasium.Env[Any, Any]:
    """Build the task.

    Without masks the disabled actions are the same in every turn, so they are left out of the action space and
    every algorithm can be used; with masks the algorithm must read ``action_masks()``.

    :param options: arguments of :class:`~rlexp.envs.restaurant.env.RestaurantEnv`
    :raises ValueError: when one of them is not allowed
    """
    env: gymnasium.Env[Any, Any] = RestaurantEnv(**options)
    return CountLoops(env if env.unwrapped.masks else EnabledActions(env))  # type: ignore[attr-defined]
