"""The card games: POPGym's rules and rewards, worked out by hand."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rlexp.envs.cards.env import AutoencodeEnv, RepeatPreviousEnv
from rlexp.envs.common.episode_replay import EpisodeReplay


def _play(
    env: gymnasium.Env[Any, Any], choose: Callable[[Any], int], seed: int
) -> tuple[list[float], Any, list[Any]]:
    seen, _ = env.reset(seed=seed)
    everything, rewards, ended = [seen], [], False
    while not ended:
        seen, reward, ended, truncated, info = env.step(np.int64(choose(seen)))
        assert not truncated
        everything.append(seen)
        rewards.append(reward)
    return rewards, info, everything


@pytest.mark.parametrize(("decks", "k"), [(1, 4), (2, 32), (1, 1), (1, 51)])
def test_repeating_the_previous_suit_is_worth_one(decks: int, k: int) -> None:
    hand: deque[int] = deque(maxlen=k)

    def remember(seen: Any) -> int:
        hand.append(int(seen.argmax()))
        return hand[0]

    rewards, info, seen = _play(RepeatPreviousEnv(decks, k), remember, seed=3)
    n = 52 * decks
    assert len(rewards) == n - 1, "one card is dealt at the beginning"
    assert rewards == [0.0] * (k - 1) + [1 / (n - k)] * (n - k)
    assert info == {"accuracy": 1.0, "is_success": True}
    assert Counter(int(card.argmax()) for card in seen) == dict.fromkeys(range(4), 13 * decks)


def test_one_card_too_early_is_wrong() -> None:
    hand: deque[int] = deque(maxlen=3)

    def too_early(seen: Any) -> int:
        hand.append(int(seen.argmax()))
        return hand[0]

    returns = [sum(_play(RepeatPreviousEnv(1, 4), too_early, seed)[0]) for seed in range(100)]
    # Another card has the same suit in 12 of 51 cases.
    assert np.mean(returns) == pytest.approx(2 * 12 / 51 - 1, abs=0.05)


def test_saying_all_suits_backwards_is_worth_one() -> None:
    pile: list[int] = []

    def recite(seen: Any) -> int:
        if seen[1]:
            pile.append(int(seen[2:].argmax()))
            return 0
        if len(pile) == 51:
            pile.append(int(seen[2:].argmax()))  # the last card is shown when it is time to answer
        return pile[-1 - next(turn)]

    turn = iter(range(52))
    rewards, info, seen = _play(AutoencodeEnv(), recite, seed=1)
    assert rewards == [0.0] * 51 + [1 / 52] * 52
    assert info == {"accuracy": 1.0, "is_success": True}
    assert [list(row[:2]) for row in seen[50:52]] == [[0, 1], [1, 0]]
    assert len({row.tobytes() for row in seen[52:]}) == 1, "nothing is given away while answering"


def test_accuracy_is_the_share_of_right_answers() -> None:
    for env in (RepeatPreviousEnv(), AutoencodeEnv()):
        rewards, info, _ = _play(env, lambda seen: 2, seed=0)
        answers = [reward for reward in rewards if reward]
        assert info["accuracy"] == np.mean(np.array(answers) > 0)
        assert not info["is_success"]


@pytest.mark.parametrize("kind", [RepeatPreviousEnv, AutoencodeEnv])
def test_it_is_well_behaved_and_comes_back_where_it_was(kind: Any) -> None:
    check_env(kind(), skip_render_check=True)
    env, other = EpisodeReplay(kind()), EpisodeReplay(kind())
    env.reset(seed=1)
    env.reset()
    for _ in range(60 if kind is AutoencodeEnv else 20):
        seen = env.step(np.int64(1))[0]
    assert np.array_equal(other.set_replay_state(env.get_replay_state()), seen)
    assert env.step(np.int64(1))[1] == other.step(np.int64(1))[1]
    assert np.array_equal(env.reset()[0], other.reset()[0])


def test_too_few_cards() -> None:
    with pytest.raises(ValueError, match="k: 52 given, must be less than the 52 cards"):
        RepeatPreviousEnv(1, 52)
