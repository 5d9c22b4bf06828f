"""What the runner knows of the card games before they are imported."""

from __future__ import annotations

from dataclasses import dataclass

from rlexp.config.fields import number, required
from rlexp.registry import EnvSpec


@dataclass
class RepeatPreviousConfig:
    """Settings of :class:`rlexp.envs.cards.env.RepeatPreviousEnv`."""

    name: str = required()
    decks: int = number(at_least=1, at_most=10_000)
    k: int = number(at_least=1)


@dataclass
class AutoencodeConfig:
    """Settings of :class:`rlexp.envs.cards.env.AutoencodeEnv`."""

    name: str = required()
    decks: int = number(at_least=1, at_most=10_000)


SPECS = (
    EnvSpec(
        "repeat_previous",
        "rlexp.envs.cards.env:RepeatPreviousEnv",
        "Say the suit of the card seen k - 1 steps ago (POPGym's RepeatPrevious)",
        actions="discrete",
        observations="vector",
        metrics=("accuracy",),
        config=RepeatPreviousConfig,
    ),
    EnvSpec(
        "autoencode",
        "rlexp.envs.cards.env:AutoencodeEnv",
        "See a deck of cards, then say their suits backwards (POPGym's Autoencode)",
        actions="discrete",
        observations="vector",
        metrics=("accuracy",),
        config=AutoencodeConfig,
    ),
)
