"""Card games that require memory: two of POPGym's (Morad et al. 2023), with its rules and rewards.

What differs: suits are seen as ones and zeros instead of a number, the end of the cards is an end of the environment
and no time limit (nothing could follow), and ``info`` says how many answers were right. One of four suits is right, so
that chance and every policy without a memory have an accuracy of about a quarter and a return of about -0.5.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

N_SUITS = 4
_CARDS_PER_SUIT = 13
_MASTERED = 0.9

Observation = npt.NDArray[np.float32]


class _CardGame(gymnasium.Env[Observation, np.int64]):
    """Counts right answers: ``info`` has ``accuracy``, their share so far, and ``is_success``, 0.9 of all at least."""

    def __init__(self, decks: int, n_answers: int, observation_size: int) -> None:
        self._suits = np.tile(np.repeat(np.arange(N_SUITS), _CARDS_PER_SUIT), decks)
        self._n_answers = n_answers
        self.action_space = spaces.Discrete(N_SUITS)
        self.observation_space = spaces.Box(0, 1, (observation_size,), np.float32)
        self._cards = self._suits
        self._answered = self._right = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Shuffle."""
        super().reset(seed=seed)
        self._cards = self.np_random.permutation(self._suits)
        self._answered = self._right = 0
        self._time = 0
        return self._observe(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Answer, where one is asked for, and see the next card."""
        asked = self._asked()
        reward = 0.0
        if asked is not None:
            right = int(action) == int(asked)
            self._answered += 1
            self._right += right
            reward = (1.0 if right else -1.0) / self._n_answers
        self._time += 1
        ended = self._answered == self._n_answers
        accuracy = self._right / max(1, self._answered)
        info = {"accuracy": accuracy, "is_success": ended and accuracy >= _MASTERED}
        return self._observe(), reward, ended, False, info

    def _asked(self) -> int | None:
        """Return the right answer now, None when nothing is asked."""
        raise NotImplementedError

    def _observe(self) -> Observation:
        raise NotImplementedError


class RepeatPreviousEnv(_CardGame):
    """At every card, say the suit of the one ``k - 1`` cards before it; a game lasts as long as the cards do.

    Observations are the suit of the card, ``(4,)``; a right answer brings ``1 / (52 decks - k)``, a wrong one costs as
    much, and the first ``k - 1`` answers do not count. POPGym's easy, medium and hard games have 1, 2 and 3 decks and a
    k of 4, 32 and 64.

    :param decks: of 52 cards
    :param k: how far back, the card itself being 1
    :raises ValueError: when there are no more than k cards
    """

    def __init__(self, decks: int = 1, k: int = 4) -> None:
        n_cards = decks * N_SUITS * _CARDS_PER_SUIT
        if k >= n_cards:
            raise ValueError(f"k: {k} given, must be less than the {n_cards} cards")
        super().__init__(decks, n_cards - k, N_SUITS)
        self.k = k

    def _asked(self) -> int | None:
        place = self._time - self.k + 1
        return None if place < 0 else int(self._cards[place])

    def _observe(self) -> Observation:
        return _one_hot(self._cards[self._time])


class AutoencodeEnv(_CardGame):
    """See all cards, one by one, then say their suits, the last one first.

    Observations, ``(6,)``: time to answer or to watch, ``(2,)``, and the suit of the card, ``(4,)``; while
    answers are given, that of the deck's first kind of card, whatever was dealt. Each answer brings or costs
    ``1 / (52 decks)``. POPGym's easy, medium and hard games have 1, 2 and 3 decks.

    :param decks: of 52 cards
    """

    def __init__(self, decks: int = 1) -> None:
        self._n_cards = decks * N_SUITS * _CARDS_PER_SUIT
        super().__init__(decks, self._n_cards, 2 + N_SUITS)

    def _asked(self) -> int | None:
        return (
            None if self._time < self._n_cards - 1 else int(self._cards[self._n_cards - 1 - self._answered])
        )

    def _observe(self) -> Observation:
        watching = self._time < self._n_cards - 1
        suit = self._cards[self._time] if self._time < self._n_cards else self._suits[0]
        return np.concatenate([[not watching, watching], _one_hot(suit)]).astype(np.float32)


def _one_hot(suit: np.int64) -> Observation:
    row = np.zeros(N_SUITS, np.float32)
    row[suit] = 1
    return row
