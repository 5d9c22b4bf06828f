"""``env=atari``: any game of the Arcade Learning Environment, ROMs included (package ``ale-py``).

Frames are preprocessed by ALE's own compiled code as Mnih et al. 2015 did: every fourth frame, the maximum of two,
grey, 84×84, the last four stacked; up to 30 idle steps at the beginning. Rewards are the game's own and an episode is a
whole game: clipping belongs to the algorithm (``algo.reward_clip``), and evaluation must see the score.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from rlexp.errors import UsageError, did_you_mean
from rlexp.system.extras import require

Screens = npt.NDArray[np.uint8]


class AtariEnv(gymnasium.Env[Screens, np.int64]):
    """One game; observations ``(frame_stack, 84, 84)``, the newest frame last.

    :param game: ROM name, e.g. ``space_invaders``
    :param sticky_action_prob: how likely the last action is repeated instead of the one given
    :param frame_skip: frames per step
    :param frame_stack: frames per observation
    :param noop_max: most idle steps at the beginning
    :param max_frames: after so many frames a game is cut off (a time limit)
    """

    def __init__(
        self,
        game: str,
        sticky_action_prob: float = 0.0,
        frame_skip: int = 4,
        frame_stack: int = 4,
        noop_max: int = 30,
        max_frames: int = 108_000,
    ) -> None:
        from ale_py.vector_env import AtariVectorEnv

        self._games = AtariVectorEnv(
            game,
            num_envs=1,
            num_threads=1,
            frameskip=frame_skip,
            stack_num=frame_stack,
            noop_max=noop_max,
            repeat_action_probability=sticky_action_prob,
            max_num_frames_per_episode=max_frames,
            reward_clipping=False,
        )
        self.observation_space = self._games.single_observation_space
        self.action_space = self._games.single_action_space

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError(
            "env=atari: an emulator can be neither copied nor pickled; hand over a function that builds the "
            "environment, as in SubprocVecEnv([lambda: make('pong')])"
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Screens, dict[str, Any]]:
        """Begin a game."""
        super().reset(seed=seed)
        # The emulator has its own random state; re-seeding it makes every game depend on gymnasium's alone.
        observation, _ = self._games.reset(seed=int(self.np_random.integers(2**31)))
        return observation[0], {}

    def step(self, action: np.int64) -> tuple[Screens, float, bool, bool, dict[str, Any]]:
        """Take an action for ``frame_skip`` frames."""
        observation, reward, terminated, truncated, _ = self._games.step(np.array([int(action)]))
        return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), {}

    def close(self) -> None:
        """Let the emulator go."""
        self._games.close()


def make(id: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Build the task.

    :param id: ROM name
    :param options: the other arguments of :class:`AtariEnv`
    :raises UsageError: when there is no such game or the package is missing
    """
    require("ale_py", "atari", "env=atari")
    from ale_py import roms

    games = roms.get_all_rom_ids()
    if id not in games:
        raise UsageError(f"env.id: there is no game called '{id}'{did_you_mean(id, games)}")
    return AtariEnv(id, **options)
