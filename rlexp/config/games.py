"""What the grid worlds, the card games and the half-hidden control tasks can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from rlexp.config.fields import choice, given, number

# OmegaConf reads these annotations at run time and knows Optional[...], not the bar notation.
# ruff: noqa: UP045


@dataclass
class MiniGridConfig:
    """A MiniGrid or BabyAI task; see ``rlexp.envs.minigrid.env.GridEnv``."""

    name: str = given()
    id: str = given()
    mission_length: int = number(at_least=0, at_most=255)
    max_steps: Optional[int] = number(at_least=1)


@dataclass
class RepeatPreviousConfig:
    """A card game that needs a memory; see ``rlexp.envs.cards.RepeatPreviousEnv``."""

    name: str = given()
    decks: int = number(at_least=1, at_most=10_000)
    k: int = number(at_least=1)


@dataclass
class AutoencodeConfig:
    """A card game that needs a memory; see ``rlexp.envs.cards.AutoencodeEnv``."""

    name: str = given()
    decks: int = number(at_least=1, at_most=10_000)


@dataclass
class PartialPendulumConfig:
    """Pendulum of which half is hidden; see ``rlexp.envs.partial.tasks.pendulum``."""

    name: str = given()
    observed: str = choice("positions", "velocities")
    max_steps: int = number(at_least=1)
    reward_seen: bool = given()


@dataclass
class PartialCartPoleConfig:
    """CartPole of which half is hidden; see ``rlexp.envs.partial.tasks.cartpole``."""

    name: str = given()
    observed: str = choice("positions", "velocities")
    actions: str = choice("continuous", "discrete")
    max_steps: int = number(at_least=1)
