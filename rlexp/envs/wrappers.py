"""Wrappers that any task can wear."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class EnabledActions(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Leaves only the enabled actions in a discrete action space, where they are the same in every step.

    :param env: a task with ``action_names``, ``disabled_actions`` (names) and a ``Discrete`` action space; an action
        that is no number, such as a dialogue act, passes through as it is
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        task: Any = env.unwrapped
        self._numbers = [k for k, name in enumerate(task.action_names) if name not in task.disabled_actions]
        self.action_space = spaces.Discrete(len(self._numbers))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take an action by its number among the enabled ones."""
        return self.env.step(self._numbers[action] if isinstance(action, (int, np.integer)) else action)

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """All True, ``(n_enabled,)``: what is disabled cannot even be named here."""
        return np.ones(len(self._numbers), dtype=bool)


class Controlled(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Steps the task by its own controller, whatever action is given.

    :param env: a task with ``controller_action(name)``
    :param name: which controller
    """

    def __init__(self, env: gymnasium.Env[Any, Any], name: str) -> None:
        super().__init__(env)
        self._name = name

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Ignore the action given."""
        task: Any = self.env.unwrapped
        return self.env.step(task.controller_action(self._name))
