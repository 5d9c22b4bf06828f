"""Recorded episodes are the ones that were played, whatever plays beside them."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rlexp.demonstrations.collect import by_controller, by_model, env_spec, episode_seeds, record
from rlexp.envs.cards.env import RepeatPreviousEnv
from rlexp.envs.minigrid.env import make
from rlexp.errors import UsageError


class _Remembers:
    """Plays RepeatPrevious by heart, its memory being the recurrent state."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[Any, Any]:
        cards = observation.argmax(axis=1)
        hands = np.tile(cards[:, None], (1, 4)) if state is None else np.roll(state, -1, axis=1)
        hands[:, -1] = cards
        hands[episode_start] = cards[episode_start, None]
        return hands[:, 0], hands


class _Halved(gymnasium.ObservationWrapper[Any, Any, Any]):
    """A wrapper that gymnasium does not know and that changes what is observed."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def observation(self, observation: Any) -> Any:
        return observation[:2]


def test_an_environment_is_described_only_where_gymnasium_builds_the_same() -> None:
    env = gymnasium.make("CartPole-v1")
    assert json.loads(str(env_spec(env)))["id"] == "CartPole-v1"
    assert env_spec(_Halved(env)) is None
    assert env_spec(RepeatPreviousEnv()) is None  # it was not made by an id


def _silent(episodes: int, steps: int) -> None:
    pass


def _replayed(env: Any, episode: Any, seed: int) -> None:
    """Do the recorded actions again: everything else must follow."""
    seen, _ = env.reset(seed=seed)
    for step, action in enumerate(episode.actions):
        parts = episode.observations
        if isinstance(parts, dict):
            assert all(np.array_equal(seen[key], parts[key][step]) for key in seen)
        else:
            assert np.array_equal(seen, parts[step])
        seen, reward, terminated, truncated, _ = env.step(action)
        assert np.float32(reward) == episode.rewards[step]
        assert (terminated or truncated) == (step == len(episode) - 1)
    assert (terminated, truncated) == (episode.terminated, episode.truncated)


@pytest.mark.parametrize("side_by_side", [1, 3, 16])
def test_a_model_with_a_memory(side_by_side: int) -> None:
    seeds = episode_seeds(0, 7)
    envs: list[Any] = [RepeatPreviousEnv() for _ in range(side_by_side)]
    reported = []
    episodes, infos = record(
        envs, by_model(_Remembers(), True, False), seeds, 0, lambda *done: reported.append(done)
    )
    assert [float(episode.rewards.sum()) for episode in episodes] == pytest.approx([1.0] * 7)
    assert all(info["is_success"] for info in infos) and reported[-1] == (7, 7 * 51)
    for episode, seed in zip(episodes, seeds, strict=True):
        _replayed(RepeatPreviousEnv(), episode, seed)


def test_a_memory_begins_again_with_every_episode() -> None:
    class Counts(_Remembers):
        def predict(
            self, observation: Any, state: Any = None, episode_start: Any = None, **_: Any
        ) -> tuple[Any, Any]:
            steps = np.where(episode_start, 0, 0 if state is None else state + 1)
            return steps % 4, steps

    envs: list[Any] = [RepeatPreviousEnv() for _ in range(2)]
    episodes, _ = record(envs, by_model(Counts(), True, False), episode_seeds(0, 5), 0, _silent)
    assert all(episode.actions.tolist() == [step % 4 for step in range(51)] for episode in episodes)


def test_sampled_actions_follow_the_seed_and_disturb_nobody() -> None:
    class Draws(_Remembers):
        def predict(self, observation: Any, state: Any = None, **_: Any) -> tuple[Any, Any]:
            return np.random.randint(4, size=len(observation)), None

    def draw(seed: int) -> list[list[int]]:
        envs: list[Any] = [RepeatPreviousEnv() for _ in range(2)]
        episodes, _ = record(envs, by_model(Draws(), False, False), episode_seeds(0, 3), seed, _silent)
        return [episode.actions.tolist() for episode in episodes]

    np.random.seed(1)
    expected = np.random.random()
    np.random.seed(1)
    first = draw(5)
    assert np.random.random() == expected
    assert draw(5) == first != draw(6)


def test_the_bot_of_a_task() -> None:
    seeds = episode_seeds(3, 4)
    envs = [make("MiniGrid-UnlockPickup-v0", mission_length=5) for _ in range(2)]
    episodes, infos = record(envs, by_controller("handcrafted"), seeds, 3, _silent)
    assert all(info["is_success"] for info in infos) and all(episode.terminated for episode in episodes)
    for episode, seed in zip(episodes, seeds, strict=True):
        _replayed(make("MiniGrid-UnlockPickup-v0", mission_length=5), episode, seed)


def test_seeds_are_nobody_elses() -> None:
    seeds = episode_seeds(0, 500)
    assert len(set(seeds)) == 500 and min(seeds) > 2**40
    assert episode_seeds(0, 10) == seeds[:10], "more demonstrations begin with the same ones"
    assert not set(seeds) & set(episode_seeds(1, 500))


def test_actions_outside_the_space_are_rejected() -> None:
    class Wrong(_Remembers):
        def predict(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            return np.array([4]), None

    with pytest.raises(UsageError, match=r"expert: .*4.* not in the environment's action space"):
        record([RepeatPreviousEnv()], by_model(Wrong(), True, False), [1], 0, _silent)
