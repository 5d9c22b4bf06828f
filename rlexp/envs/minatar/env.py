"""``env=minatar``: the five MinAtar games (Young & Tian 2019, MIT licence, package ``minatar``)."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from rlexp.errors import UsageError, did_you_mean
from rlexp.system.extras import require

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
Grid = npt.NDArray[np.uint8]


class MinAtarEnv(gymnasium.Env[Grid, np.int64]):
    """A game on a 10×10 grid; observations ``(channels, 10, 10)`` of zeros and ones.

    :param game: one of :data:`GAMES`
    :param sticky_action_prob: how likely the last action is repeated instead of the one given
    :param difficulty_ramping: whether games get harder with time, where they can
    :param minimal_actions: only the actions that do something in this game; else all six
    """

    def __init__(
        self,
        game: str = "breakout",
        sticky_action_prob: float = 0.1,
        difficulty_ramping: bool = True,
        minimal_actions: bool = True,
    ) -> None:
        from minatar import Environment

        self.game = game
        self._game = Environment(game, sticky_action_prob, difficulty_ramping)
        self._game.seed(0)  # from here on the game itself and the sticky actions share one generator
        actions = self._game.minimal_action_set() if minimal_actions else range(self._game.num_actions())
        self._actions = [int(action) for action in actions]
        self.action_space = spaces.Discrete(len(self._actions))
        height, width, channels = self._game.state_shape()
        self.observation_space = spaces.Box(0, 1, (channels, height, width), np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Grid, dict[str, Any]]:
        """Begin a game."""
        super().reset(seed=seed)
        # The game has its own random state; re-seeding it makes every game depend on gymnasium's alone.
        # The game's own ``seed`` makes a new generator, which takes as long as twenty steps; the draws are the same.
        self._game.random.seed(int(self.np_random.integers(2**31)))
        self._game.last_action = 0
        self._game.reset()
        return self._observe(), {}

    def step(self, action: np.int64) -> tuple[Grid, float, bool, bool, dict[str, Any]]:
        """Take an action, by its number among those of this task."""
        reward, terminal = self._game.act(self._actions[int(action)])
        return self._observe(), float(reward), bool(terminal), False, {}

    def _observe(self) -> Grid:
        state: npt.NDArray[np.bool_] = self._game.state()
        return np.ascontiguousarray(state.transpose(2, 0, 1), dtype=np.uint8)


def make(game: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Build the task.

    :param game: which one
    :param options: the other arguments of :class:`MinAtarEnv`, and ``max_steps``: a time limit, None for none
    :raises UsageError: when there is no such game or the package is missing
    """
    if game not in GAMES:
        raise UsageError(
            f"env.game: '{game}' given, allowed are {', '.join(GAMES)}{did_you_mean(game, GAMES)}"
        )
    require("minatar", "minatar", "env=minatar")
    max_steps = options.pop("max_steps", None)
    env: gymnasium.Env[Any, Any] = MinAtarEnv(game, **options)
    return env if max_steps is None else gymnasium.wrappers.TimeLimit(env, max_steps)
