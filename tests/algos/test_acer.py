"""ACER as a Stable-Baselines3 citizen: its replay buffer, its updates against a loop, and exact state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.vec_env import DummyVecEnv

from rlexp.algos.acer.acer import ACER
from rlexp.algos.acer.policies import ACERPolicy
from rlexp.algos.acer.replay import RUNNING, TERMINATED, TRUNCATED, Segments, TrajectoryReplayBuffer
from rlexp.algos.acer.updates import Settings
from rlexp.errors import UsageError
from tests.algos.acer_environments import SMALL, Chain, Grid, Images, Reach, make


def parameters(model: ACER) -> list[th.Tensor]:
    return [value.clone() for value in model.policy.state_dict().values()]


# -------------------------------------------------------------------------------- the replay buffer


class _Peek(BaseCallback):
    """Records the steps as the environment returned them."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[dict[str, Any]] = []

    def _on_step(self) -> bool:
        names = ("rewards", "dones", "infos", "new_obs", "actions")
        self.steps.append({name: self.locals[name] for name in names})
        return True


@pytest.mark.parametrize("n_envs", [1, 3])
def test_segments_hold_what_happened(n_envs: int) -> None:
    model, peek = make(n_envs=n_envs, n_steps=40, learning_starts=10_000, reward_scale=2.0), _Peek()
    model.learn(40 * n_envs, callback=peek)
    segments = model.replay_buffer.get(np.arange(n_envs), th.device("cpu"))
    truncated = {(t, b): k for k, (t, b) in enumerate(segments.truncations.T.tolist())}
    kinds = set()
    for t, step in enumerate(peek.steps):
        np.testing.assert_array_equal(segments.observations[t + 1], step["new_obs"])
        np.testing.assert_array_equal(segments.rewards[t], 2 * step["rewards"])
        np.testing.assert_array_equal(segments.actions[t], step["actions"])
        for b in range(n_envs):
            limit = step["infos"][b].get("TimeLimit.truncated", False)
            expected = TRUNCATED if limit else TERMINATED if step["dones"][b] else RUNNING
            assert segments.ends[t, b] == expected
            assert ((t, b) in truncated) == limit
            if limit:
                last = step["infos"][b]["terminal_observation"]
                np.testing.assert_array_equal(segments.truncation_observations[truncated[t, b]], last)
            kinds.add(expected)
    assert TERMINATED in kinds


def test_truncation_observations_survive_the_ring() -> None:
    model = make(Reach, n_envs=2, n_steps=10, buffer_size=60)
    model.learn(200)
    store = model.replay_buffer
    assert store.capacity == len(store) == 6 and store.added == 20
    assert set(store.truncation_observations) == {
        tuple(place) for place in np.argwhere(store.ends == TRUNCATED).tolist()
    }
    segments = store.get(np.array([5, 0, 5]), th.device("cpu"))
    for k, (t, b) in enumerate(segments.truncations.T.tolist()):
        np.testing.assert_array_equal(
            segments.truncation_observations[k], store.truncation_observations[t, [5, 0, 5][b]]
        )


def test_the_ring_keeps_the_latest() -> None:
    def store(capacity: int) -> TrajectoryReplayBuffer:
        return TrajectoryReplayBuffer(capacity, 2, Chain.observation_space, Chain.action_space, 3)

    replay, rollout = store(5), store(2)
    for number in range(8):
        rollout.rewards[:], rollout.added = [[2 * number, 2 * number + 1]], 2
        replay.add(rollout)
    assert sorted(replay.rewards[0].tolist()) == [11, 12, 13, 14, 15] and len(replay) == 5
    assert set(replay.sample(200).tolist()) == {0, 1, 2, 3, 4}


def test_behaviour_is_that_of_acting_time() -> None:
    model = make(n_steps=8, learning_starts=10_000)
    before = model.policy.actor
    peek = _Peek()
    logits = before(th.eye(6)).detach()
    model.learn(8, callback=peek)
    segments = model.replay_buffer.get(np.zeros(1, np.int64), th.device("cpu"))
    indices = segments.observations[:8, 0].argmax(-1)
    th.testing.assert_close(segments.behaviour[:, 0], logits[indices].log_softmax(-1))


def test_on_policy_weights_are_one() -> None:
    model = make(learning_starts=10_000)
    seen: list[dict[str, Any]] = []
    update = model._update

    def spy(segments: Segments, chosen: Settings) -> dict[str, th.Tensor]:
        seen.append(update(segments, chosen))
        return seen[-1]

    model._update = spy  # type: ignore[method-assign]
    model.learn(100)
    assert len(seen) == 10, "one update per segment and no other before learning starts"
    assert all(info["importance_weight"].item() == pytest.approx(1, abs=1e-4) for info in seen)
    assert all(info["truncated"].item() == 0 for info in seen)


# ------------------------------------------------------------------------------------- the algorithm


@pytest.mark.parametrize(("ratio", "expected"), [(0, 0.0), (1, 1.0), (8, 8.0)])
def test_replay_ratio(ratio: int, expected: float) -> None:
    model = make(n_steps=5, replay_ratio=ratio, learning_starts=0, batch_size=1)
    model.learn(500)
    assert (model._n_updates - 100) / 100 == pytest.approx(expected, abs=0.7)
    assert (len(model.replay_buffer) == 0) == (ratio == 0)


def test_the_average_policy_follows_slowly() -> None:
    model = make(average_policy_decay=0.9)
    policy = model.policy
    of_optimizer = {id(p) for group in policy.optimizer.param_groups for p in group["params"]}
    assert not any(id(p) in of_optimizer for p in policy.average.parameters())
    assert not any(p.requires_grad for p in policy.average.parameters())
    start = policy.average.head.weight.clone()
    policy.action_net.weight.data += 1
    policy.update_average(0.9)
    th.testing.assert_close(policy.average.head.weight, start + 0.1)
    observations = th.eye(6)
    assert not th.equal(policy.average_actor(observations), policy.actor(observations))
    policy.update_average(0.0)
    th.testing.assert_close(policy.average_actor(observations), policy.actor(observations))


def test_the_average_policy_follows_in_training() -> None:
    model = make(average_policy_decay=0.5)
    start = model.policy.average.head.weight.clone()
    model.learn(100)
    average, present = model.policy.average.head.weight, model.policy.action_net.weight
    assert 0 < (average - present).abs().max() < (start - present).abs().max()


@pytest.mark.parametrize("retrace", [True, False])
@pytest.mark.parametrize("trust_region", [True, False])
def test_learns_the_chain(trust_region: bool, retrace: bool) -> None:
    model = make(n_envs=2, learning_starts=100, trust_region=trust_region, retrace=retrace)
    model.learn(2500)
    assert (model.policy.actor(th.eye(6)[:5]).argmax(-1) == 1).all(), "'right' everywhere"


class _Rows(KVWriter):
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        self.rows.append(dict(key_values))

    def close(self) -> None: ...

    def without_times(self) -> list[dict[str, Any]]:
        return [{key: row[key] for key in row if not key.startswith("time/")} for row in self.rows]


def test_what_is_logged() -> None:
    model, rows = make(n_envs=2), _Rows()
    model.set_logger(Logger(None, [rows]))
    model.learn(1000, log_interval=10)
    last = rows.rows[-1]
    assert last["train/constraint_active"] > 0, "the trust region must bite in a real run"
    assert 0 <= last["train/truncated"] <= 1 and 0.5 < last["train/importance_weight"] < 2
    assert last["train/kl_to_average"] > 0
    for name in ("value_loss", "entropy", "n_updates", "learning_rate"):
        assert f"train/{name}" in last


def test_images() -> None:
    model = make(
        Images, n_envs=2, policy="CnnPolicy", n_steps=5, learning_starts=20, policy_kwargs={"net_arch": []}
    )
    model.learn(60)
    assert model.replay_buffer.observations.dtype == np.uint8
    assert model.replay_buffer.observations.shape[2:] == (1, 36, 36), (
        "channels first, as the network reads them"
    )
    state = model.policy.state_dict()
    assert any(key.startswith("average.features.") for key in state)


def test_grids() -> None:
    assert ACER.policy_for(Grid.observation_space) == "CnnPolicy"
    assert ACER.policy_for(Images.observation_space) == "CnnPolicy"
    assert ACER.policy_for(Chain.observation_space) == "MlpPolicy"
    model = make(Grid, policy="CnnPolicy", n_steps=5, learning_starts=20).learn(60)
    first = next(model.policy.features_extractor.parameters())
    assert first.shape == (16, 4, 3, 3), "one layer of 16 filters, as MinAtar's authors have it"


def test_numbered_states() -> None:
    env = make_vec_env(lambda: gymnasium.make("FrozenLake-v1"), 2)
    model = ACER("MlpPolicy", env, **SMALL).learn(100)
    actions, _ = model.predict(np.arange(16))
    assert actions.shape == (16,) and all(model.action_space.contains(int(action)) for action in actions)


def test_actions_stay_in_the_box() -> None:
    model = make(Reach, policy_kwargs={"log_std_init": 1.0}).learn(100)  # Reach itself asserts it
    actions, _ = model.predict(np.zeros((50, 3), np.float32))
    assert all(model.action_space.contains(action) for action in actions)
    mean, _ = evaluate_policy(model, model.get_env(), n_eval_episodes=2)
    assert np.isfinite(mean)


def test_std_is_learned_or_not() -> None:
    fixed = make(Reach).learn(200)
    assert th.equal(fixed.policy.log_std, th.full((2,), np.log(0.3)))
    learned = make(Reach, policy_kwargs={"learn_std": True}).learn(200)
    assert not th.equal(learned.policy.log_std, th.full((2,), np.log(0.3)))
    assert not th.equal(learned.policy.average_log_std, learned.policy.log_std)


# -------------------------------------------------------------------------------- bad input


class Odd(Reach):
    """An environment of any spaces."""

    def __init__(self, action_space: Any = None, observation_space: Any = None) -> None:
        self.action_space = action_space or Reach.action_space
        self.observation_space = observation_space or Reach.observation_space


REJECTED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "matrix of actions": ({"action_space": spaces.Box(-1, 1, (2, 2))}, {}, "Box of one dimension"),
    "several choices": ({"action_space": spaces.MultiDiscrete([2, 3])}, {}, "MultiDiscrete"),
    "several switches": ({"action_space": spaces.MultiBinary(3)}, {}, "MultiBinary"),
    "numbered from one": ({"action_space": spaces.Discrete(3, start=1)}, {}, "from 0"),
    "dictionary": (
        {"observation_space": spaces.Dict({"a": spaces.Box(0, 1, (2,))})},
        {"policy": ACERPolicy},
        "Dict",
    ),
    "policy": ({}, {"policy": "MultiInputPolicy"}, "MultiInputPolicy"),
    "statistics": ({}, {"trust_region_statistics": "logit"}, "probabilities, logits"),
    "negative ratio": ({}, {"replay_ratio": -1}, "replay_ratio"),
    "no region": ({}, {"trust_region_delta": 0.0}, "trust_region_delta"),
    "no reward": ({}, {"reward_scale": 0.0}, "reward_scale"),
    "no cap": ({}, {"importance_weight_clip": 0.0}, "importance_weight_clip"),
    "no steps": ({}, {"n_steps": 0}, "n_steps"),
    "average": ({}, {"average_policy_decay": 1.1}, "average_policy_decay"),
    "buffer smaller than a rollout": ({}, {"buffer_size": 5, "learning_starts": 0}, "buffer_size"),
    "buffer smaller than the start": ({}, {"buffer_size": 30}, "learning_starts = 40"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected_in_one_line(name: str) -> None:
    env_kwargs, arguments, expected = REJECTED[name]
    arguments = {"policy": "MlpPolicy", **SMALL, **arguments}
    with pytest.raises(UsageError, match=expected) as error:
        ACER(env=DummyVecEnv([lambda: Odd(**env_kwargs)]), **arguments)
    assert "\n" not in str(error.value)


# --------------------------------------------------------------------------------- the real command


@pytest.mark.slow
def test_from_the_command_line(rlexp: Any, tmp_path: Path) -> None:
    arguments = ("algo=acer", "env=gym", "logger=none", "evaluation.episodes=2", "algo.learning_starts=100")
    result = rlexp(*arguments, "env.id=CartPole-v1", "total_timesteps=400", "algo.n_steps=5")
    assert result.returncode == 0, result.stderr
    (metrics,) = tmp_path.glob("outputs/runs/gym-CartPole-v1/acer/*/seed=0/metrics.jsonl")
    assert "train/constraint_active" in metrics.read_text()
    # Rejected before there is a folder, by what is only known of the built environment and the algorithm's class.
    result = rlexp(*arguments, "env.id=CartPole-v1", "total_timesteps=600", "algo.buffer_size=10")
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert "algo.buffer_size: 10 given" in result.stderr
    assert len(list(tmp_path.glob("outputs/runs/gym-CartPole-v1/acer/*"))) == 1


def test_a_replay_of_other_segments_is_rejected(tmp_path: Path) -> None:
    model = make()
    model.learn(200)
    model.save_replay_buffer(tmp_path / "replay.npz")
    with pytest.raises(ValueError, match="does not fit"):
        make(n_steps=5).load_replay_buffer(tmp_path / "replay.npz")
