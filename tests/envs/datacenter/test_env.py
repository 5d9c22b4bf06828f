"""The task: an episode, its bookkeeping, its exact state."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rlexp  # noqa: F401
from rlexp.envs.common.episode_replay import EpisodeReplay
from rlexp.envs.datacenter import task
from rlexp.envs.datacenter.env import DataCenterEnv

pytestmark = pytest.mark.usefixtures("engine_installed")  # the weather files come with it


def _short(**options: Any) -> DataCenterEnv:
    return DataCenterEnv(**{"backend": "surrogate", "days": 2, **options})


def _random_actions(n: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, (n, 4)).astype(np.float32)


def test_it_is_registered_and_well_behaved() -> None:
    env = gymnasium.make("rlexp/DataCenter-v0", backend="surrogate", days=2)
    check_env(env.unwrapped, skip_render_check=True)


def test_a_year_ends_as_a_truncation_with_its_means() -> None:
    env = _short(days=33, weather="helsinki", weather_noise=0.0)
    env.reset(seed=0)
    rewards, powers, inside, months = [], [], [], []
    for action in _random_actions(33 * 96):
        _, reward, terminated, truncated, info = env.step(action)
        assert not terminated
        rewards.append(reward)
        powers.append(env.values[3] + env.values[4])
        inside.append((env.values[1:3] >= 22) & (env.values[1:3] <= 25))
        if "period" in info:
            months.append(info["period"])
    assert truncated and env._step == 33 * 96
    assert info["power_kw"] == pytest.approx(np.mean(powers) / 1000)
    assert info["step_reward"] == pytest.approx(np.mean(rewards))
    assert [info["comfort_west"], info["comfort_east"]] == pytest.approx(np.mean(inside, axis=0).tolist())
    assert [month["month"] for month in months] == [1, 2]
    assert months[0]["power_kw"] == pytest.approx(np.mean(powers[: 31 * 96]) / 1000)
    assert months[1]["power_kw"] == pytest.approx(np.mean(powers[31 * 96 :]) / 1000)
    with pytest.raises(RuntimeError, match="reset first"):
        env.step(None)


def test_reward_and_observation_are_those_after_the_step() -> None:
    for scaling in task.SCALINGS:
        env = _short(scaling=scaling)
        env.reset(seed=0)
        observation, reward, *_ = env.step(np.array([-1.0, 0.0, 0.5, 1.0], np.float32))
        _, west, east, servers, cooling = env.values
        assert reward == pytest.approx(task.reward(west, east, servers + cooling))
        low, high = task.SCALINGS[scaling]
        expected = np.clip((env.values - low) / (high - low) * 2 - 1, -1, 1)
        assert observation == pytest.approx(expected, abs=1e-5)


def test_actions_are_stretched_to_the_bounds() -> None:
    class Spy:
        def begin(self, weather: Any, n_steps: int) -> Any:
            return np.array([0.0, 23.0, 23.0, 70e3, 5e3])

        def step(self, setpoints: Any, flows: Any) -> Any:
            self.given = (setpoints, flows)
            return np.array([0.0, 85.0, 23.0, 70e3, 5e3])

    env, spy = _short(), Spy()
    env._backend = spy  # type: ignore[assignment]
    env.reset(seed=0)
    env.step(np.array([-1.0, 1.0, -2.0, 0.0], np.float32))
    assert spy.given == ((10.0, 40.0), (1.75, 4.375)), "what lies outside is clipped"
    env.step(np.array([1.0, 1.0, -1.0, -1.0], np.float32))
    assert spy.given == ((10.0, 40.0), (7.0, 1.75)), (
        "above 80 degrees the plant's protection cools the west zone"
    )
    with pytest.raises(ValueError, match="must be finite"):
        env.step(np.array([np.nan, 0, 0, 0], np.float32))


def test_a_year_does_not_change_hands() -> None:
    env = DataCenterEnv(backend="surrogate", days=1)
    for first, then in ((None, np.zeros(4, np.float32)), (np.zeros(4, np.float32), None)):
        env.reset(seed=0)
        env.step(first)
        with pytest.raises(ValueError, match="as a whole or not at all"):
            env.step(then)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "engin"}, "backend: 'engin' given.*did you mean 'engine'"),
        ({"scaling": "none"}, "scaling: 'none' given"),
        ({"days": 366}, "days: 366 given"),
        ({"weather_noise": -1}, "weather_noise: -1 given"),
        ({"weather": []}, "at least one weather"),
        ({"weather": "helsinky"}, "did you mean 'helsinki'"),
    ],
)
def test_what_is_not_allowed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _short(**options)


def test_years_go_through_the_weathers_and_never_repeat() -> None:
    env = _short(weather=["stockholm", "golden"])
    names, first = [], []
    for number in range(4):
        _, info = env.reset(seed=7 if number == 0 else None)
        names.append(info["weather"])
        first.append(env.values[0])
    assert names == ["stockholm", "golden"] * 2 and len(set(first)) == 4
    env.reset(seed=7)
    assert env.values[0] == first[0], "a seed begins the years anew"


@pytest.mark.parametrize("backend", ["surrogate", "engine"])
def test_a_year_is_played_again_exactly(backend: str) -> None:
    options = {"backend": backend, "days": 1, "weather": ["stockholm", "golden"]}
    env = EpisodeReplay(_short(**options))
    env.reset(seed=3)
    actions = _random_actions(200)
    for action in actions[:130]:  # into the second year
        observation, *_, truncated, _ = env.step(action)
        if truncated:
            env.reset()
    state = env.get_replay_state()
    rest = [env.step(action)[0] for action in actions[130:160]]
    other = EpisodeReplay(_short(**options))
    other.reset(seed=0)
    other.reset()  # in another year than the one to be played again
    assert np.array_equal(other.set_replay_state(state), observation)
    assert other.unwrapped._year == 1  # type: ignore[attr-defined]
    assert np.array_equal([other.step(action)[0] for action in actions[130:160]], rest)
    env.close()
    other.close()
