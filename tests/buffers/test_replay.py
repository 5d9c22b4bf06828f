"""n-step returns against a plain loop, time limits, many environments, spaces, exact state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3 import SAC
from stable_baselines3.common.buffers import BaseBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from rlexp.buffers.prioritized import PrioritizedReplayBuffer
from rlexp.buffers.replay import NStepReplay
from rlexp.runs import checkpoint

_BOX = spaces.Box(-1e6, 1e6, (1,), np.float32)


class EpisodeFixture:
    """Random steps of some environments, and the n-step return of each by a plain loop."""

    def __init__(self, n_envs: int, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.n_envs = n_envs
        self.steps: list[dict[str, Any]] = []

    def step(self, buffer: NStepReplay) -> None:
        number = len(self.steps)
        done = self.rng.random(self.n_envs) < 0.2
        truncated = done & (self.rng.random(self.n_envs) < 0.5)
        one = {
            "reward": self.rng.normal(size=self.n_envs).astype(np.float32),
            "done": done,
            "truncated": truncated,
            "break": np.zeros(self.n_envs, bool),
        }
        self.steps.append(one)
        obs = (number + 0.01 * np.arange(self.n_envs)).astype(np.float32)[:, None]
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": bool(t)} for t in truncated]
        buffer.add(obs, obs + 0.5, np.zeros((self.n_envs, 1), int), one["reward"], done, infos)

    def expected_return(
        self, number: int, env: int, n_steps: int, gamma: float
    ) -> tuple[float, float, float, float]:
        """Return, terminal, discount and the next observation."""
        total, discount = 0.0, 1.0
        for step in range(number, min(number + n_steps, len(self.steps))):
            one = self.steps[step]
            total += discount * one["reward"][env]
            discount *= gamma
            if one["done"][env] or one["break"][env]:
                break
        terminal = one["done"][env] and not one["truncated"][env]
        return total, float(terminal), discount, step + 0.01 * env + 0.5


@pytest.mark.parametrize("kind", [NStepReplay, PrioritizedReplayBuffer])
@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("n_steps", [1, 3, 5])
@pytest.mark.parametrize("length", [6, 10, 27])
def test_n_step_returns(kind: type[NStepReplay], n_envs: int, n_steps: int, length: int) -> None:
    rows = 10
    buffer = kind(rows * n_envs, _BOX, spaces.Discrete(2), "cpu", n_envs, n_steps=n_steps, gamma=0.9)
    episodes = EpisodeFixture(n_envs)
    for _ in range(length):
        episodes.step(buffer)
    found = buffer.sample(500)
    assert found.discounts is not None and isinstance(found.observations, th.Tensor)
    assert set(found.indices.tolist()) == set(range(len(buffer)))
    for k, item in enumerate(found.indices):
        row, env = divmod(int(item), n_envs)
        number = max(n for n in range(length) if n % rows == row)
        reward, terminal, discount, after = episodes.expected_return(number, env, n_steps, 0.9)
        assert float(found.observations[k]) == pytest.approx(number + 0.01 * env, abs=1e-5)
        assert float(found.rewards[k]) == pytest.approx(reward, abs=1e-5)
        assert float(found.dones[k]) == terminal
        assert float(found.discounts[k]) == pytest.approx(discount)
        assert isinstance(found.next_observations, th.Tensor)
        assert float(found.next_observations[k]) == pytest.approx(after, abs=1e-5)


def test_returns_do_not_cross_a_break() -> None:
    buffer = NStepReplay(10, _BOX, spaces.Discrete(2), "cpu", n_steps=3, gamma=1.0)
    for number in range(6):
        obs = np.full((1, 1), number, np.float32)
        buffer.add(obs, obs + 1, np.zeros((1, 1), int), np.ones(1), np.zeros(1, bool), [{}])
        if number == 2:
            buffer.break_trajectories()
    found = buffer.sample(200)
    assert {int(i): float(r) for i, r in zip(found.indices, found.rewards, strict=True)} == {
        0: 3, 1: 2, 2: 1, 3: 3, 4: 2, 5: 1
    }  # fmt: skip
    assert float(found.dones.sum()) == 0


def test_uniform_replay_is_uniform_over_environments_too() -> None:
    from scipy.stats import chisquare

    np.random.seed(0)
    buffer = NStepReplay(15, _BOX, spaces.Discrete(2), "cpu", 3)
    episodes = EpisodeFixture(3)
    for _ in range(8):
        episodes.step(buffer)
    assert chisquare(np.bincount(buffer.sample(15_000).indices, minlength=15)).pvalue > 1e-3


@pytest.mark.parametrize("as_stable_baselines_does", [True, False])
@pytest.mark.parametrize("kind", [NStepReplay, PrioritizedReplayBuffer])
def test_many_steps_at_once_are_those_steps(kind: type[NStepReplay], as_stable_baselines_does: bool) -> None:
    rng = np.random.default_rng(0)
    arguments = {"n_envs": 2, "reward_clip": 1.0}
    one = kind(14, _BOX, spaces.Discrete(5), "cpu", **arguments)
    other = kind(14, _BOX, spaces.Discrete(5), "cpu", **arguments)
    for size in (3, 7, 2, 6, 9):  # 27 rows around 7, the last ones more than fit
        obs, actions = rng.normal(size=(size, 2, 1)), rng.integers(0, 5, (size, 2, 1))
        rewards, dones = rng.normal(size=(size, 2)) * 3, rng.random((size, 2)) < 0.3
        timeouts = dones & (rng.random((size, 2)) < 0.5)
        infos = [[{"TimeLimit.truncated": bool(t)} for t in row] for row in timeouts]
        if as_stable_baselines_does:
            one.extend(list(obs), list(obs + 1), list(actions), list(rewards), list(dones), infos)
        else:
            one.extend(obs, obs + 1, actions, rewards, dones, timeouts=timeouts)
        BaseBuffer.extend(other, obs, obs + 1, actions, rewards, dones, infos)
    assert (one.pos, one.full) == (other.pos, other.full)
    for (name, mine), (_, theirs) in zip(one._arrays(), other._arrays(), strict=True):
        assert np.array_equal(mine, theirs), name
    assert np.abs(one.rewards).max() == 1.0
    if isinstance(one, PrioritizedReplayBuffer) and isinstance(other, PrioritizedReplayBuffer):
        assert np.array_equal(one.priorities.probabilities(), other.priorities.probabilities())
    with pytest.raises(ValueError, match="rewards: 8 time steps given"):
        one.extend(*[np.zeros((7, 2, 1))] * 3, np.zeros((8, 2)), np.zeros((8, 2)))


def test_many_rows_of_dictionaries_at_once() -> None:
    space = spaces.Dict({"a": _BOX, "b": spaces.Discrete(3)})
    one, other = (NStepReplay(6, space, spaces.Discrete(2), "cpu") for _ in range(2))
    rows = [{"a": np.array([[k]], np.float32), "b": np.array([k % 3])} for k in range(5)]
    others = (
        list(np.zeros((4, 1, 1), int)),
        list(np.arange(4.0)[:, None]),
        list(np.zeros((4, 1))),
        [[{}]] * 4,
    )
    one.extend(rows[:4], rows[1:], *others)
    BaseBuffer.extend(other, rows[:4], rows[1:], *others)
    for (name, mine), (_, theirs) in zip(one._arrays(), other._arrays(), strict=True):
        assert np.array_equal(mine, theirs), name


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 255, (1, 4, 4), np.uint8),
        spaces.Discrete(7),
        spaces.MultiDiscrete([3, 4]),
        spaces.Dict({"image": spaces.Box(0, 255, (1, 4, 4), np.uint8), "number": spaces.Box(-1, 1, (2,))}),
    ],
    ids=["image", "discrete", "multidiscrete", "dict"],
)
def test_every_kind_of_observation(space: spaces.Space[Any]) -> None:
    space.seed(0)
    buffer = PrioritizedReplayBuffer(12, space, spaces.Discrete(2), "cpu", 2, n_steps=2, gamma=0.9)

    def stack(given: list[Any]) -> Any:
        if isinstance(given[0], dict):
            return {key: np.stack([one[key] for one in given]) for key in given[0]}
        return np.stack(given)

    seen = []
    for _ in range(9):
        obs, after = [space.sample(), space.sample()], [space.sample(), space.sample()]
        seen.append(obs)
        buffer.add(stack(obs), stack(after), np.zeros(2, int), np.zeros(2), np.zeros(2, bool), [{}, {}])
    found = buffer.sample(50)
    for k, item in enumerate(found.indices):
        row, env = divmod(int(item), 2)
        wanted = seen[max(n for n in range(9) if n % 6 == row)][env]
        keys = wanted if isinstance(wanted, dict) else {"": wanted}
        for key in keys:
            got = (
                found.observations[key][k] if isinstance(found.observations, dict) else found.observations[k]
            )
            assert np.array_equal(np.ravel(got.numpy()), np.ravel(keys[key]))


def test_rewards_are_normalised_before_they_are_summed() -> None:
    class Fake(VecNormalize):
        def __init__(self) -> None:
            pass

        def normalize_reward(self, reward: np.ndarray) -> np.ndarray:
            return np.clip(reward, -0.5, 0.5)

        def normalize_obs(self, obs: Any) -> Any:
            return obs

    buffer = NStepReplay(10, _BOX, spaces.Discrete(2), "cpu", n_steps=2, gamma=0.5)
    for number in range(3):
        obs = np.full((1, 1), number, np.float32)
        buffer.add(obs, obs, np.zeros((1, 1), int), np.ones(1), np.zeros(1, bool), [{}])
    found = buffer.sample(30, env=Fake())
    assert {int(i): float(r) for i, r in zip(found.indices, found.rewards, strict=True)} == {
        0: 0.75,
        1: 0.75,
        2: 0.5,
    }


@pytest.mark.parametrize("arguments", [{"n_steps": 0}, {"n_steps": 3}, {"n_steps": 30, "gamma": 0.9},
                                   {"optimize_memory_usage": True}])  # fmt: skip
def test_arguments_that_make_no_sense(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        NStepReplay(10, _BOX, spaces.Discrete(2), "cpu", **arguments)


@pytest.mark.parametrize("scheme", ["proportional", "rank"])
@pytest.mark.parametrize("steps", [7, 31])
def test_a_buffer_comes_back_bit_by_bit(tmp_path: Any, scheme: str, steps: int, monkeypatch: Any) -> None:
    monkeypatch.setattr("rlexp.buffers.chunked_io.CHUNK_BYTES", 16)  # many pieces

    def build() -> PrioritizedReplayBuffer:
        return PrioritizedReplayBuffer(
            20, _BOX, spaces.Discrete(2), "cpu", 2, scheme=scheme, n_steps=2, gamma=0.9
        )

    buffer, episodes = build(), EpisodeFixture(2)
    for _ in range(steps):
        episodes.step(buffer)
    buffer.update_priorities(buffer.sample(16).indices, np.random.default_rng(0).normal(size=16) * 4)
    buffer.anneal(0.3)
    state = checkpoint.load(checkpoint.save(tmp_path, buffer.checkpoint_state(), 1, keep_last=1))
    other = build()
    other.load_checkpoint_state(state)
    for one in (buffer, other):
        episodes.rng, episodes.steps = np.random.default_rng(5), []
        episodes.step(one)
    for _ in range(5):
        np.random.seed(0)
        mine = buffer.sample(16)
        np.random.seed(0)
        theirs = other.sample(16)
        assert all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))
        for one in (buffer, other):
            one.update_priorities(mine.indices, np.linspace(-1, 1, 16))


def test_capturing_copies_nothing_large() -> None:
    buffer = PrioritizedReplayBuffer(1000, _BOX, spaces.Discrete(2), "cpu", scheme="rank")
    buffer.extend(*[np.zeros((500, 1, 1))] * 3, np.zeros((500, 1)), np.zeros((500, 1)))
    arrays = buffer.checkpoint_state()["arrays"]
    assert all(np.shares_memory(piece, buffer.observations) for piece in arrays["observations"])


def test_it_plugs_into_stable_baselines3() -> None:
    model = SAC("MlpPolicy", DummyVecEnv([_pendulum] * 2), replay_buffer_class=PrioritizedReplayBuffer,
                replay_buffer_kwargs={"scheme": "rank"}, buffer_size=100, learning_starts=10, batch_size=8,
                policy_kwargs={"net_arch": [8]}, device="cpu")  # fmt: skip
    model.learn(60)
    assert isinstance(model.replay_buffer, PrioritizedReplayBuffer) and len(model.replay_buffer) == 60


def _pendulum() -> Any:
    import gymnasium

    return gymnasium.make("Pendulum-v1")
