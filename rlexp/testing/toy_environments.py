"""Tiny environments to test algorithms on: every kind of observation and of action, episodes of seven steps at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rlexp.demonstrations.dataset import Demonstrations, Episode

LENGTH = 7
"""Steps after which an episode is truncated."""
_PLACES = 5
_OBSERVATIONS: dict[str, spaces.Space[Any]] = {
    "vector": spaces.Box(0, 1, (_PLACES + 1,), np.float32),
    "image": spaces.Box(0, 1, (3, 6, 6), np.uint8),
    "screen": spaces.Box(0, 255, (36, 36, 1), np.uint8),
    "dict": spaces.Dict(
        {"place": spaces.Box(0, 1, (_PLACES,), np.float32), "clock": spaces.Box(0, 1, (1,), np.float32)}
    ),
}


class Walk(gymnasium.Env[Any, Any]):
    """Walk from the first of five places to the last for +3; every step costs, and now and then one is lost.

    An episode is decided by the generator that ``reset(seed=...)`` seeds and by the actions. Arriving terminates it,
    the seventh step truncates it.

    :param observations: ``"vector"``, ``"image"`` (3×6×6), ``"screen"`` (36×36×1, a game's screen) or ``"dict"``
    :param actions: ``"discrete"``: stay, forward, back; ``"continuous"``: two numbers from -2 to 1, the first of which
        pushes forward
    :param masked: whether ``action_masks`` forbids to go back, and to stay at every other place; a forbidden action
        raises an AssertionError
    """

    def __init__(self, observations: str = "vector", actions: str = "discrete", masked: bool = False) -> None:
        self.kind, self.masked = observations, masked
        self.observation_space = _OBSERVATIONS[observations]
        self.action_space = (
            spaces.Discrete(3) if actions == "discrete" else spaces.Box(-2.0, 1.0, (2,), np.float32)
        )
        self.place = self.steps = 0
        if masked:
            self.action_masks = self._action_masks

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin at the first place."""
        super().reset(seed=seed)
        self.place = self.steps = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move; every fifth step or so is lost."""
        discrete = isinstance(self.action_space, spaces.Discrete)
        if self.masked and not self._action_masks()[int(action)]:
            raise AssertionError(f"action {int(action)} is forbidden at place {self.place}")
        if not self.action_space.contains(np.asarray(action) if not discrete else int(action)):
            raise AssertionError(f"action {action!r} is not in {self.action_space}")
        move = (0, 1, -1)[int(action)] if discrete else int(np.sign(np.asarray(action)[0]))
        chance = float(self.np_random.random())
        self.steps += 1
        self.place = int(np.clip(self.place + (0 if chance < 0.2 else move), 0, _PLACES - 1))
        arrived = self.place == _PLACES - 1
        reward = 3.0 if arrived else -0.1 - 0.1 * chance
        over = arrived or self.steps == LENGTH
        info = {"is_success": arrived} if over else {}
        return self._observe(), reward, arrived, over and not arrived, info

    def _action_masks(self) -> np.ndarray[Any, Any]:
        return np.array([self.place % 2 == 0, True, False])

    def _observe(self) -> Any:
        place = np.eye(_PLACES, dtype=np.float32)[self.place]
        clock = np.array([self.steps / LENGTH], np.float32)
        if self.kind == "vector":
            return np.concatenate([place, clock])
        if self.kind == "dict":
            return {"place": place, "clock": clock}
        if self.kind == "image":
            grid = np.zeros((3, 6, 6), np.uint8)
            grid[0, self.place], grid[1, :, : self.steps % 6], grid[2] = 1, 1, self.steps % 2
            return grid
        screen = np.zeros((36, 36, 1), np.uint8)
        screen[7 * self.place : 7 * self.place + 7], screen[:, -5 * self.steps - 1 :, 0] = 255, 100
        return screen


def make(
    observations: str = "vector", actions: str = "discrete", masked: bool = False
) -> Callable[[], gymnasium.Env[Any, Any]]:
    """Return a function that builds a :class:`Walk`.

    :param observations: see :class:`Walk`
    :param actions: see :class:`Walk`
    :param masked: see :class:`Walk`
    """
    return lambda: Walk(observations, actions, masked)


def demonstrate(observations: str = "vector", episodes: int = 6, masked: bool = False) -> Demonstrations:
    """Record episodes of always going forward, with discrete actions.

    :param episodes: how many; episode ``k`` is seeded with ``k``
    """
    env = Walk(observations, masked=masked)
    found = []
    for seed in range(episodes):
        collected, rewards = [env.reset(seed=seed)[0]], []
        terminated = truncated = False
        while not (terminated or truncated):
            observation, reward, terminated, truncated, _ = env.step(1)
            collected.append(observation)
            rewards.append(reward)
        stacked: Any = (
            {key: np.stack([one[key] for one in collected]) for key in collected[0]}
            if isinstance(collected[0], dict)
            else np.stack(collected)
        )
        actions = np.ones(len(rewards), np.int64)
        found.append(Episode(stacked, actions, np.array(rewards, np.float32), terminated, truncated))
    return Demonstrations(tuple(found), env.observation_space, env.action_space, {"expert": "forward"})


def register() -> None:
    """Register the environments with gymnasium as ``rlexp-testing/<observations>-<actions>-v0``; again: no effect."""
    for observations in _OBSERVATIONS:
        for actions in ("discrete", "continuous"):
            name = f"rlexp-testing/{observations}-{actions}-v0"
            if name not in gymnasium.registry:
                gymnasium.register(
                    name, f"{__name__}:Walk", kwargs={"observations": observations, "actions": actions}
                )


register()
