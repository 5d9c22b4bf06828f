"""DQN: networks, exploration, learning, the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.dqn.policies import QNetwork

from rlexp.algos.dqn.dqn import DQN
from rlexp.algos.dqn.policies import DuelingQNetwork
from rlexp.buffers.prioritized import PrioritizedReplayBuffer
from tests.conftest import Rlexp, only_run

SMALL: dict[str, Any] = {
    "learning_starts": 20,
    "batch_size": 8,
    "buffer_size": 500,
    "train_freq": 2,
    "target_update_interval": 20,
    "policy_kwargs": {"net_arch": [16]},
    "seed": 3,
    "device": "cpu",
}


class Fork(gymnasium.Env[Any, Any]):
    """One-step episodes: action 1 is worth 10, action 0 nothing."""

    observation_space: Any = spaces.Box(0, 1, (2,), np.float32)
    action_space: Any = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample() * 0, {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observation_space.sample() * 0, 10.0 * action, True, False, {}


@pytest.mark.parametrize(
    "arguments",
    [
        {"replay": "uniform"},
        {"replay": "proportional"},
        {"replay": "rank"},
        {"replay": "rank", "double_q": False, "dueling": True, "n_steps": 3, "td_clip": None},
    ],
    ids=lambda arguments: "-".join(map(str, arguments.values())),
)
def test_it_learns(corridor: type[gymnasium.Env[Any, Any]], arguments: dict[str, Any]) -> None:
    class Walk(corridor):  # type: ignore[valid-type, misc]
        action_space = spaces.Discrete(2)  # 'quit' left out: giving up at once is hard to unlearn

    more: dict[str, Any] = {
        "learning_rate": 3e-3,
        "train_freq": 1,
        "buffer_size": 4000,
        "exploration_fraction": 0.7,
    }
    env = DummyVecEnv([lambda: Monitor(Walk())] * 2)
    model = DQN("MlpPolicy", env, **{**SMALL, **more, **arguments})
    model.learn(1500)
    environment = Walk()
    obs, _ = environment.reset()
    done, total = False, 0.0
    while not done:
        obs, reward, terminated, truncated, _ = environment.step(
            int(model.predict(obs, deterministic=True)[0])
        )
        done, total = terminated or truncated, total + float(reward)
    assert total == 1.0, "five steps to the right: four of -1 and one of +5"


def test_rewards_are_clipped_on_the_way_in_and_errors_in_the_priorities() -> None:
    model = DQN("MlpPolicy", DummyVecEnv([Fork]), reward_clip=1.0, td_clip=0.25, alpha=1.0, priority_epsilon=0.0,
                **SMALL)  # fmt: skip
    model.learn(200)
    assert set(np.unique(model.replay_buffer.rewards)) <= {0.0, 1.0}
    assert isinstance(model.replay_buffer, PrioritizedReplayBuffer)
    masses = model.replay_buffer.priorities._tree.masses[:200]
    assert model.replay_buffer.max_priority == 1.0
    assert ((masses <= 0.25) | (masses == 1.0)).all(), "clipped errors, or the priority of new transitions"
    assert (masses == 0.25).any()


def test_importance_weights_reach_the_loss() -> None:
    def trained(beta: float) -> list[th.Tensor]:
        model = DQN("MlpPolicy", DummyVecEnv([Fork]), beta=beta, alpha=1.0, **SMALL)
        model.learn(60)
        return [p.detach().clone() for p in model.q_net.parameters()]

    assert not all(th.equal(a, b) for a, b in zip(trained(0.0), trained(1.0), strict=True))


def test_beta_reaches_1_at_the_end() -> None:
    model = DQN("MlpPolicy", DummyVecEnv([Fork]), replay="rank", **SMALL)
    assert isinstance(model.replay_buffer, PrioritizedReplayBuffer) and model.replay_buffer.beta == 0.5
    model.learn(100)
    assert model.replay_buffer.beta == pytest.approx(1.0)


def test_the_dueling_head_keeps_values_and_advantages_apart() -> None:
    model = DQN("MlpPolicy", DummyVecEnv([Fork]), dueling=True, **SMALL)
    assert isinstance(model.q_net, DuelingQNetwork)
    observations = th.rand(5, 2)
    head: Any = model.q_net.q_net
    assert th.allclose(
        model.q_net(observations).mean(dim=1, keepdim=True), head.value(observations), atol=1e-6
    )


def test_every_environment_explores_by_itself() -> None:
    model = DQN("MlpPolicy", DummyVecEnv([Fork] * 400), **{**SMALL, "buffer_size": 800})
    model.exploration_rate = 0.5
    with th.no_grad():  # greedy is action 0
        model.q_net.q_net[-1].bias.copy_(th.tensor([100.0, 0.0]))
    actions, _ = model.predict(np.zeros((400, 2), np.float32))
    assert 60 < actions.sum() < 140, "a quarter of 400"
    assert model.predict(np.zeros((400, 2), np.float32), deterministic=True)[0].sum() == 0
    assert np.shape(model.predict(np.zeros(2, np.float32))[0]) == ()


def test_returns_do_not_reach_over_a_second_learn(corridor: type[gymnasium.Env[Any, Any]]) -> None:
    model = DQN("MlpPolicy", DummyVecEnv([corridor]), n_steps=3, **{**SMALL, "learning_starts": 1000})
    model.learn(21)
    pos = model.replay_buffer.pos
    model.learn(21)
    assert model.replay_buffer.breaks[pos - 1].all() and model.replay_buffer.breaks.sum() == 1


@pytest.mark.parametrize("shape", [(4, 10, 10), (2, 40, 40)])
def test_images_small_and_large(shape: tuple[int, ...]) -> None:
    class Images(Fork):
        observation_space = spaces.Box(0, 255, shape, np.uint8)

    assert DQN.policy_for(Images.observation_space) == "CnnPolicy"
    model = DQN("CnnPolicy", DummyVecEnv([Images]), dueling=True, **SMALL)
    model.learn(30)
    assert (model.replay_buffer.frames is not None) == (shape[1] >= 36)


@pytest.mark.parametrize(
    "space",
    [spaces.Box(0, 255, (2, 40, 40), np.uint8), spaces.Box(0, 1, (2, 10, 10), np.uint8), spaces.Box(-1, 1, (3,))],
    ids=["screen", "grid", "vector"],
)  # fmt: skip
def test_values_are_those_of_the_network_of_stable_baselines3(space: spaces.Box) -> None:
    class Given(Fork):
        observation_space = space

    model = DQN(DQN.policy_for(space), DummyVecEnv([Given]), **SMALL)
    space.seed(0)
    observations = th.as_tensor(np.stack([space.sample() for _ in range(3)]))
    assert th.equal(model.q_net(observations), QNetwork.forward(model.q_net, observations))


def test_gradients_are_clipped_only_when_asked_to() -> None:
    def trained(limit: float | None) -> list[th.Tensor]:
        model = DQN("MlpPolicy", DummyVecEnv([Fork]), td_clip=None, max_grad_norm=limit, **SMALL)
        model.learn(60)
        return [p.detach().clone() for p in model.q_net.parameters()]

    def same(one: list[th.Tensor], other: list[th.Tensor]) -> bool:
        return all(th.equal(a, b) for a, b in zip(one, other, strict=True))

    free = trained(None)
    assert same(free, trained(1e9)) and not same(free, trained(1e-9))


def test_dictionaries() -> None:
    class Both(Fork):
        observation_space = spaces.Dict({"a": spaces.Box(0, 1, (2,)), "b": spaces.Discrete(3)})

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            gymnasium.Env.reset(self, seed=seed)
            return self.observation_space.sample(), {}

        def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return self.observation_space.sample(), float(action), True, False, {}

    assert DQN.policy_for(Both.observation_space) == "MultiInputPolicy"
    DQN("MultiInputPolicy", DummyVecEnv([Both] * 2), replay="rank", n_steps=2, **SMALL).learn(60)


def test_an_unknown_replay_is_rejected() -> None:
    with pytest.raises(ValueError, match="uniform, proportional, rank"):
        DQN("MlpPolicy", DummyVecEnv([Fork]), replay="greedy")


def test_the_command(rlexp: Rlexp, tmp_path: Path) -> None:
    algo = ("algo=dqn", "algo.replay=rank", "algo.dueling=true", "algo.n_steps=3", "algo.learning_starts=50")
    arguments = (
        *algo,
        "env=gym",
        "env.id=CartPole-v1",
        "tuned=none",
        "total_timesteps=300",
        "logger=none",
        "evaluation.episodes=2",
    )
    done = rlexp(*arguments)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (only_run(tmp_path) / "metrics.jsonl").read_text().splitlines()]
    assert any("train/beta" in row for row in rows)
    rejected = rlexp(*arguments, "algo.replay=greedy")
    assert rejected.returncode == 2 and "proportional" in rejected.stderr
