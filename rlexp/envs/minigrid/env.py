"""A MiniGrid or BabyAI task whose observations are small whole numbers only."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from rlexp.envs.minigrid.missions import WORDS, encode
from rlexp.envs.minigrid.view import image
from rlexp.errors import UsageError, did_you_mean
from rlexp.system.extras import require

Observation = dict[str, npt.NDArray[np.uint8]]

_HIGHEST = np.array([10, 5, 3], np.uint8)  # of a cell's kind, colour and state
_FAMILIES = ("MiniGrid-", "BabyAI-")


class GridEnv(gymnasium.Env[Observation, np.int64]):
    """The environment's own layouts, rewards and step limit; ``info["is_success"]`` says whether the mission is
    accomplished.

    Observations are a dictionary of uint8 arrays: ``image`` ``(7, 7, 3)``, the kind, colour and state of every cell in
    front of the agent that it can see; ``direction`` ``(1,)``, where it looks; ``mission`` ``(mission_length,)``, see
    :mod:`rlexp.envs.minigrid.missions`. The seven actions are MiniGrid's.

    :param id: registered name, e.g. ``MiniGrid-UnlockPickup-v0``
    :param mission_length: words of the longest mission; 0: the mission is not observed, where it is always the same
    :param max_steps: step limit; None: the environment's own
    :raises ValueError: when a mission does not fit ``mission_length``
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, id: str, mission_length: int = 48, max_steps: int | None = None) -> None:
        limit = {} if max_steps is None else {"max_steps": max_steps}
        game: Any = gymnasium.make(id, disable_env_checker=True, **limit)
        self._game: Any = game.unwrapped
        self._game.gen_obs = self._look  # the game asks for it after every step
        self.mission_length = mission_length
        self.action_space = spaces.Discrete(len(self._game.actions))
        shape = (self._game.agent_view_size, self._game.agent_view_size, 3)
        parts: dict[str, spaces.Space[Any]] = {
            "image": spaces.Box(np.zeros(shape, np.uint8), np.broadcast_to(_HIGHEST, shape), dtype=np.uint8),
            "direction": spaces.Box(0, 3, (1,), np.uint8),
        }
        if mission_length:
            parts["mission"] = spaces.Box(0, len(WORDS), (mission_length,), np.uint8)
        self.observation_space = spaces.Dict(parts)  # type: ignore[assignment]
        self._bot: Any = None
        self._bot_knows = -1  # the step up to which the bot knows what was done
        self._steps = 0
        self._last_action: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Lay out a new task."""
        super().reset(seed=seed)
        self._game.np_random = self.np_random  # one generator decides everything
        with _quiet():
            seen, _ = self._game.reset()
        self._mission = encode(self.mission, self.mission_length) if self.mission_length else None
        self._bot, self._steps, self._last_action = None, 0, None
        return self._observe(seen), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        self._last_action = int(action)
        self._steps += 1
        seen, reward, terminated, truncated, _ = self._game.step(self._game.actions(self._last_action))
        success = bool(terminated and reward > 0)
        # The last step may accomplish the mission; then the limit has cut nothing off.
        return (
            self._observe(seen),
            float(reward),
            bool(terminated),
            bool(truncated and not terminated),
            {"is_success": success},
        )

    def render(self) -> npt.NDArray[np.uint8]:
        """Draw the whole grid, ``(16 * rows, 16 * columns, 3)``, whatever the render mode."""
        frame: npt.NDArray[np.uint8] = self._game.get_frame(tile_size=16)
        return frame

    @property
    def mission(self) -> str:
        """What is to be done, in words."""
        return str(self._game.mission)

    @property
    def controllers(self) -> tuple[str, ...]:
        """``handcrafted`` where BabyAI's bot knows the task."""
        from rlexp.envs.minigrid.bot import can_play

        return ("handcrafted",) if can_play(self._game) else ()

    def controller_action(self, name: str) -> int:
        """Return what the bot does now. It plans again if it was not asked at the previous step.

        :raises ValueError: if it does not know the environment
        """
        from rlexp.envs.minigrid.bot import Bot

        if name not in self.controllers:
            raise ValueError(f"controller={name!r} is not allowed: it must be one of {self.controllers}")
        if self._bot is None or self._bot_knows != self._steps - 1:
            self._bot = Bot(self._game)
            action = self._bot.act(None)
        else:
            action = self._bot.act(self._last_action)
        self._bot_knows = self._steps
        return int(action)

    def _look(self) -> Observation:
        return {"image": image(self._game), "direction": np.array([self._game.agent_dir], np.uint8)}

    def _observe(self, observation: Observation) -> Observation:
        if self._mission is not None:
            observation["mission"] = self._mission.copy()
        return observation


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """BabyAI's levels print every layout that they reject."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def make(id: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Build the task.

    :param id: registered name
    :param options: the other arguments of :class:`GridEnv`
    :raises UsageError: when there is no such environment, it cannot be built or its missions do not fit
    """
    require("minigrid", "minigrid", "env=minigrid")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    import minigrid  # noqa: F401  (registers its environments)

    known = [name for name in gymnasium.registry if name.startswith(_FAMILIES)]
    if id not in known:
        raise UsageError(
            f"env.id: '{id}' given, allowed are minigrid's {len(known)} environments, "
            f"MiniGrid-... and BabyAI-...{did_you_mean(id, known)}"
        )
    try:
        env = GridEnv(id, **options)
        env.reset(seed=0)
    except ValueError as error:
        raise UsageError(f"env.{error}") from error
    except gymnasium.error.Error as error:
        raise UsageError(f"env.id: {id} cannot be built: {str(error).splitlines()[0]}") from error
    return env
