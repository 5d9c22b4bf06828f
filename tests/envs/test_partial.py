"""Pendulum and CartPole of which half is hidden, next to gymnasium's own."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rlexp.envs.common.episode_replay import EpisodeReplay
from rlexp.envs.partial.env import cartpole, pendulum
from rlexp.errors import UsageError


@pytest.mark.parametrize(("observed", "entries"), [("positions", [0, 1]), ("velocities", [2])])
def test_pendulum_is_gymnasiums_but_for_what_is_seen(observed: str, entries: list[int]) -> None:
    part, whole = pendulum(observed), gymnasium.make("Pendulum-v1")
    check_env(part, skip_render_check=True)
    rng = np.random.default_rng(0)
    assert np.array_equal(part.reset(seed=3)[0], whole.reset(seed=3)[0][entries])
    for step in range(1, 201):
        action = rng.uniform(-2, 2, 1).astype(np.float32)
        seen, full = part.step(action), whole.step(action)
        assert np.array_equal(seen[0], full[0][entries]) and seen[1] == full[1]
        assert seen[2:4] == full[2:4] == (False, step == 200), "the time limit is not an end"


@pytest.mark.parametrize("observed", ["positions", "velocities"])
def test_the_reward_seen_is_that_of_the_step_before(observed: str) -> None:
    with_it, without = pendulum(observed, reward_seen=True), pendulum(observed)
    check_env(with_it, skip_render_check=True)
    rng = np.random.default_rng(0)
    for episode in range(2):
        seen, part = with_it.reset(seed=episode)[0], without.reset(seed=episode)[0]
        assert np.array_equal(seen, [*part, 0.0]), "an episode knows nothing of the one before"
        for _ in range(9):
            action = rng.uniform(-2, 2, 1).astype(np.float32)
            seen, reward, *_ = with_it.step(action)
            part, expected, *_ = without.step(action)
            assert reward == expected and seen.dtype == np.float32
            assert np.array_equal(seen, np.append(part, np.float32(expected)))
    assert with_it.observation_space.contains(np.append(part, np.float32(-(np.pi**2) - 6.4 - 0.004)))


@pytest.mark.parametrize(("observed", "entries"), [("positions", [0, 2]), ("velocities", [1, 3])])
@pytest.mark.parametrize("actions", ["continuous", "discrete"])
def test_cartpole_is_gymnasiums_but_for_what_is_seen(observed: str, entries: list[int], actions: str) -> None:
    part, whole = cartpole(observed, actions), gymnasium.make("CartPole-v1")
    check_env(part, skip_render_check=True)
    rng = np.random.default_rng(0)
    for seed in range(5):
        assert np.array_equal(part.reset(seed=seed)[0], whole.reset(seed=seed)[0][entries])
        done = False
        while not done:
            push = int(rng.integers(2))
            given: Any = push if actions == "discrete" else np.array([2.0 * push - 1.0], np.float32)
            seen, full = part.step(given), whole.step(push)
            assert np.array_equal(seen[0], full[0][entries]) and seen[1:4] == full[1:4]
            done = bool(full[2] or full[3])


def test_force_is_continuous() -> None:
    def velocity(action: float) -> float:
        env = cartpole("velocities")
        before = env.reset(seed=0)[0][0]
        return float(env.step(np.array([action], np.float32))[0][0] - before)

    still, half, whole = velocity(0.0), velocity(0.5), velocity(1.0)
    assert half - still == pytest.approx((whole - still) / 2, rel=1e-4)
    assert velocity(7.0) == whole, "no force is stronger than 10 N"


def test_it_comes_back_where_it_was() -> None:
    env = EpisodeReplay(cartpole("positions"))
    env.reset(seed=1)
    env.reset()
    for _ in range(5):
        seen = env.step(np.array([0.3], np.float32))[0]
    assert np.array_equal(EpisodeReplay(cartpole("positions")).set_replay_state(env.get_replay_state()), seen)


def test_unknown_halves() -> None:
    with pytest.raises(UsageError, match="did you mean 'velocities'"):
        pendulum("velocity")
    with pytest.raises(UsageError, match="continuous, discrete"):
        cartpole("positions", "ternary")
