"""Blind Cliffwalk, MinAtar and Atari: what they promise, and that they are decided by their random state."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rlexp  # noqa: F401
from rlexp.envs.blind_cliffwalk.env import BlindCliffwalkEnv
from rlexp.envs.common.episode_replay import EpisodeReplay
from rlexp.errors import UsageError

MINATAR = ["asterix", "breakout", "freeway", "seaquest", "space_invaders"]


def _minatar(game: str, **options: Any) -> gymnasium.Env[Any, Any]:
    pytest.importorskip("minatar")
    from rlexp.envs.minatar.env import make

    return make(game, **options)


def _atari(game: str, **options: Any) -> gymnasium.Env[Any, Any]:
    pytest.importorskip("ale_py")
    from rlexp.envs.atari.env import make

    return make(game, **options)


def _played(env: gymnasium.Env[Any, Any], steps: int, seed: int | None) -> list[Any]:
    """Play at random, over several episodes, and return everything seen."""
    rng = np.random.default_rng(0)
    found: list[Any] = [env.reset(seed=seed)[0]]
    for _ in range(steps):
        obs, reward, terminated, truncated, _ = env.step(rng.integers(env.action_space.n))  # type: ignore[attr-defined]
        found += [obs, reward, terminated, truncated]
        if terminated or truncated:
            found.append(env.reset()[0])
    return found


def _same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


# --------------------------------------------------------------------------------------------- blind cliffwalk


def test_one_way_of_all_succeeds() -> None:
    for n in (1, 4):
        env = BlindCliffwalkEnv(n, layout_seed=5)
        successes = []
        for number in range(2**n):
            env.reset()
            for place in range(n):
                _, reward, terminated, truncated, info = env.step(np.int64(number >> place & 1))
                assert not truncated and info["is_success"] == (reward == 1.0)
                if terminated:
                    successes.append(reward)
                    break
        assert sorted(successes) == [0.0] * (2**n - 1) + [1.0]
    with pytest.raises(ValueError, match="n_states"):
        BlindCliffwalkEnv(0)


def test_it_is_registered_and_well_behaved() -> None:
    env = gymnasium.make("rlexp/BlindCliffwalk-v0", n_states=3)
    check_env(env.unwrapped, skip_render_check=True)


# ----------------------------------------------------------------------------------------------------- MinAtar


@pytest.mark.parametrize("game", MINATAR)
def test_minatar_games(game: str) -> None:
    env = _minatar(game)
    check_env(env, skip_render_check=True)
    assert env.observation_space.shape is not None and env.observation_space.shape[1:] == (10, 10)
    first = _played(env, 300, seed=4)
    assert _same(first, _played(_minatar(game), 300, seed=4))
    assert not _same(first, _played(_minatar(game), 300, seed=5))


def test_minatar_observations_are_the_games_own() -> None:
    env = _minatar("breakout")
    obs, _ = env.reset(seed=0)
    assert obs[3].sum() == 30, "three rows of ten bricks"
    assert obs[0, 9, 4] == 1, "the paddle begins at the bottom"


def test_minatar_time_limit_is_no_end() -> None:
    env = _minatar("freeway", max_steps=7)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(7)][-1] == (False, True)


def test_minatar_unknown_game() -> None:
    with pytest.raises(UsageError, match="did you mean 'breakout'"):
        _minatar("brekout")


# ------------------------------------------------------------------------------------------------------- Atari


def test_atari_screens_and_determinism() -> None:
    env = _atari("pong")
    assert env.observation_space.shape == (4, 84, 84) and env.observation_space.dtype == np.uint8
    first = _played(env, 1000, seed=4)
    assert any(found is True for found in first), "random play loses a game within 1,000 steps"
    other = _played(_atari("pong"), 1000, seed=4)
    assert _same(first, other)
    assert not _same(first[:400], _played(_atari("pong"), 99, seed=5)[:400])
    env.close()


def test_atari_stacks_move_by_one() -> None:
    env = _atari("pong")
    before, _ = env.reset(seed=0)
    for _ in range(50):
        after = env.step(np.int64(2))[0]
        assert np.array_equal(before[1:], after[:-1])
        before = after
    assert len({frame.tobytes() for frame in before}) > 1


def test_atari_unknown_game() -> None:
    with pytest.raises(UsageError, match="did you mean 'pong'"):
        _atari("pomg")


@pytest.mark.parametrize(
    "make", [lambda: _minatar("asterix"), lambda: _atari("pong")], ids=["minatar", "atari"]
)
def test_games_come_back_where_they_were(make: Any) -> None:
    env = EpisodeReplay(make())
    _played(env, 150, seed=1)
    env.reset()  # not the first game: its beginning follows from the random state, not from a seed
    for _ in range(30):
        obs = env.step(np.int64(1))[0]
    other = EpisodeReplay(make())
    assert np.array_equal(other.set_replay_state(env.get_replay_state()), obs)
    for _ in range(100):
        one, two = env.step(np.int64(2)), other.step(np.int64(2))
        assert np.array_equal(one[0], two[0]) and one[1:4] == two[1:4]
        if one[2]:
            assert np.array_equal(env.reset()[0], other.reset()[0])
