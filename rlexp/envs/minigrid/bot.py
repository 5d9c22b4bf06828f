"""BabyAI's bot (Chevalier-Boisvert et al. 2019), which comes with the ``minigrid`` package, on more tasks than its own.

The bot plans from a task's instruction, which only BabyAI's levels carry. The MiniGrid tasks in which an object is to
be picked up are built of the same rooms, so they are given the instruction that their mission says in words.
"""

from __future__ import annotations

from typing import Any

from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel
from minigrid.envs.babyai.core.verifier import ObjDesc, PickupInstr
from minigrid.envs.blockedunlockpickup import BlockedUnlockPickupEnv
from minigrid.envs.keycorridor import KeyCorridorEnv
from minigrid.envs.unlockpickup import UnlockPickupEnv
from minigrid.utils.baby_ai_bot import BabyAIBot

_PICKS_UP = (UnlockPickupEnv, BlockedUnlockPickupEnv, KeyCorridorEnv)


def can_play(game: Any) -> bool:
    """Return whether the bot knows a task."""
    return isinstance(game, (RoomGridLevel, *_PICKS_UP))


class Bot:
    """Plays one episode.

    :param game: the task, at the beginning of an episode or later
    """

    def __init__(self, game: Any) -> None:
        if type(game) in _PICKS_UP:
            description = ObjDesc(game.obj.type, game.obj.color)  # type: ignore[no-untyped-call]
            game.instrs = PickupInstr(description)  # type: ignore[no-untyped-call]
            game.instrs.reset_verifier(game)
        self._bot: Any = BabyAIBot(game)  # type: ignore[no-untyped-call]

    def act(self, last_action: int | None) -> int:
        """Return the next action.

        :param last_action: what was done since the last call, None at the first
        """
        return int(self._bot.replan(last_action))
