"""Exact state of any task: where its episode began, and what was done since."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class EpisodeReplay(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Remembers the random state in which the episode began and the actions taken since.

    Restoring puts the random state back and plays the episode again, so that every environment whose randomness comes
    from gymnasium's ``np_random`` resumes exactly, simulators that cannot be copied included.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._start: dict[str, Any] | None = None
        self._actions: list[Any] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode and remember how."""
        # A seed decides the episode by itself; without one it follows from the generator as it stands now.
        generator = None if seed is not None else self.unwrapped.np_random.bit_generator.state
        self._start = {"seed": seed, "options": options, "generator": generator}
        task: Any = self.unwrapped
        if hasattr(task, "episode_state"):  # what else decides an episode, e.g. how many there were before it
            self._start["own"] = task.episode_state()
        self._actions = []
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step and remember the action."""
        self._actions.append(np.array(action) if isinstance(action, np.ndarray) else action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        if truncated and not terminated and self.has_wrapper_attr("action_masks"):
            # A vectorised environment begins the next episode at once; what was allowed here could not be asked any
            # more.
            info["terminal_action_masks"] = self.get_wrapper_attr("action_masks")()
        return observation, reward, terminated, truncated, info

    def get_replay_state(self) -> dict[str, Any]:
        """Return the episode's beginning (JSON values) and its actions as an array ``(n_actions, ...)``."""
        return {"start": self._start, "actions": np.array(self._actions)}

    def set_replay_state(self, state: dict[str, Any]) -> Any:
        """Play the remembered episode again.

        :return: the observation it has arrived at; None when no episode had begun
        """
        start = state["start"]
        if start is None:
            return None
        if start["generator"] is not None:
            self.unwrapped.np_random.bit_generator.state = start["generator"]
        if "own" in start:
            self.unwrapped.load_episode_state(start["own"])  # type: ignore[attr-defined]
        observation, _ = self.reset(seed=start["seed"], options=start["options"])
        for action in state["actions"]:
            observation = self.step(action)[0]
        return observation
