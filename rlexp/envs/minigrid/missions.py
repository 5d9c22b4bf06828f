"""Missions as numbers: every word has one, in the order in which they are spoken."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

WORDS = (
    *("red", "green", "blue", "purple", "yellow", "grey"),
    *("key", "ball", "box", "door", "object", "goal", "square", "room", "rooms", "lava", "hallway"),
    *(
        "go",
        "to",
        "pick",
        "up",
        "open",
        "unlock",
        "opening",
        "put",
        "get",
        "fetch",
        "find",
        "reach",
        "traverse",
    ),
    *(
        "use",
        "avoid",
        "must",
        "the",
        "a",
        "an",
        "you",
        "your",
        "it",
        "in",
        "on",
        "of",
        "at",
        "from",
        "near",
        "next",
    ),
    *("behind", "front", "left", "right", "end", "matching", "and", "then", "after", ","),
)
"""The vocabulary of the 178 tasks of minigrid 3.2; a word's number is its place here, from 1 on."""

_NUMBERS = {word: number for number, word in enumerate(WORDS, start=1)}


def encode(mission: str, length: int) -> npt.NDArray[np.uint8]:
    """Return the numbers of a mission's words, ``(length,)``, with zeros behind them.

    :raises ValueError: when there are more words, or one that is not in :data:`WORDS`
    """
    words = re.findall(r"[a-z]+|,", mission.lower())
    if len(words) > length:
        raise ValueError(f"mission_length: {length} given, the mission '{mission}' has {len(words)} words")
    numbers = np.zeros(length, np.uint8)
    for place, word in enumerate(words):
        if word not in _NUMBERS:
            raise ValueError(
                f"mission_length: the mission '{mission}' has the unknown word '{word}'; 0 leaves it out"
            )
        numbers[place] = _NUMBERS[word]
    return numbers
