"""Wrappers for any environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray


class Controlled(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Steps an environment by a reference controller of its own, whatever action is given.

    :param env: an environment whose ``unwrapped`` has ``controllers`` and ``controller_action(name)``
    :param name: one of its ``controllers``
    :raises ValueError: if it has no such controller
    """

    def __init__(self, env: gymnasium.Env[Any, Any], name: str) -> None:
        super().__init__(env)
        known = tuple(getattr(env.unwrapped, "controllers", ()))
        if name not in known:
            raise ValueError(
                f"controller={name!r} is not allowed: it must be one of {', '.join(known) or '(none)'}"
            )
        self._name = name

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step with the controller's action.

        :param action: ignored
        """
        return self.env.step(self.unwrapped.controller_action(self._name))  # type: ignore[attr-defined]


class EnabledActions(gymnasium.ActionWrapper[Any, Any, Any]):
    """Leaves actions that are never allowed out of the action space, so that every algorithm can be used.

    Dialogue acts and other actions that are no whole numbers are passed on as they are.

    :param env: an environment with a ``Discrete`` action space whose ``unwrapped`` has ``action_names`` and
        ``disabled_actions``, both lists of names
    :raises ValueError: for any other environment
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        names = getattr(env.unwrapped, "action_names", None)
        disabled = getattr(env.unwrapped, "disabled_actions", None)
        if names is None or disabled is None or not isinstance(env.action_space, spaces.Discrete):
            raise ValueError(f"{env} has no numbered actions with names of which some are disabled")
        self._enabled = tuple(number for number, name in enumerate(names) if name not in disabled)
        self.action_names = tuple(names[number] for number in self._enabled)
        """Names of the actions that are left, in the order of their numbers."""
        self.action_space = spaces.Discrete(len(self._enabled))

    def action(self, action: Any) -> Any:
        """The environment's number of an action.

        :param action: number of an enabled action, or something that is not a number
        :raises ValueError: if there is no such action
        """
        if isinstance(action, np.ndarray) and action.ndim == 0:
            action = action.item()
        if not isinstance(action, int | np.integer):
            return action
        if not 0 <= action < len(self._enabled):
            raise ValueError(
                f"action={action!r} is not allowed: it must be a whole number from 0 to "
                f"{len(self._enabled) - 1}"
            )
        return self._enabled[action]

    def action_masks(self) -> NDArray[np.bool_]:
        """Which of the enabled actions are allowed now, as sb3-contrib asks for it: bool of shape (n,)."""
        masks = np.asarray(self.env.get_wrapper_attr("action_masks")(), dtype=np.bool_)
        return masks.take(self._enabled)
