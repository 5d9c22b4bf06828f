"""LCPO as a Stable-Baselines3 citizen, and what its rollout buffer makes of whole rollouts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from sb3_contrib.common.envs import InvalidActionEnvDiscrete
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from rlexp.algos.lcpo.buffers import LoopClippingRolloutBuffer
from rlexp.algos.lcpo.lcpo import LCPO, MaskableLCPO

SWITCHES: dict[str, Any] = {
    "clip_gae": True,
    "clip_lae": True,
    "clip_n_hop_loops": True,
    "clip_termination_loops": True,
    "loop_similarity": 0.99,
    "advantage_scaling": "none",
}


Make = Callable[..., Any]


@pytest.fixture
def make(corridor: type) -> Make:
    """Build an algorithm on the corridor, small settings by default."""

    def build(algorithm: type = LCPO, n_envs: int = 1, **kwargs: Any) -> Any:
        kwargs = {"n_steps": 32, "batch_size": 16, "n_epochs": 2, "seed": 0, "device": "cpu", **kwargs}
        return algorithm("MlpPolicy", make_vec_env(corridor, n_envs), **kwargs)

    return build


def filled_buffer(
    places: list[list[int]], starts: list[list[int]], rewards: float = -1.0
) -> LoopClippingRolloutBuffer:
    """A buffer of unit vectors; one list per environment."""
    n_steps, n_envs = len(places[0]), len(places)
    buffer = LoopClippingRolloutBuffer(
        n_steps, spaces.Box(0, 1, (9,)), spaces.Discrete(2), "cpu", gae_lambda=0.5, gamma=0.9, n_envs=n_envs
    )
    buffer.observations[:] = np.eye(9)[np.array(places).T]
    buffer.episode_starts[:] = np.array(starts).T
    buffer.rewards[:] = rewards
    buffer.values[:] = 2.0
    return buffer


def test_segments() -> None:
    buffer = filled_buffer([[0, 1, 2, 3], [0, 1, 2, 3]], [[0, 0, 1, 0], [1, 0, 0, 1]])
    buffer.compute_returns_and_advantage(th.tensor([3.0, 4.0]), np.array([False, True]))
    assert list(buffer.segments()) == [
        (0, slice(0, 2), True),
        (0, slice(2, 4), False),
        (1, slice(0, 3), True),
        (1, slice(3, 4), True),
    ]


def clipped(buffer: LoopClippingRolloutBuffer, last: int, done: bool, **switches: Any) -> dict[str, float]:
    buffer.compute_returns_and_advantage(th.tensor([4.0]), np.array([done]))
    return buffer.clip_loops(np.eye(9)[[last]], **{**SWITCHES, **switches})


def test_cut_episode_bootstraps_and_sees_the_state_after() -> None:
    # The last transition stays where it is: a loop, seen only through the state after the rollout.
    buffer = filled_buffer([[0, 1]], [[1, 0]])
    statistics = clipped(buffer, last=1, done=False)
    assert statistics["train/loop_fraction"] == 0.5
    # LAE_1 = -1 + .9 * 4 - 2 = .6 -> min with R = -1.2; A_0 = -1 + .9 * 4 - 2 = .6 (past the loop)
    np.testing.assert_allclose(buffer.advantages[:, 0], [0.6, -1.2], rtol=1e-6)
    np.testing.assert_allclose(buffer.returns[:, 0], [2.6, 4.0], rtol=1e-6)
    # Ended instead of cut: what comes after is another episode; no loop, but a termination loop.
    buffer = filled_buffer([[0, 1]], [[1, 0]])
    statistics = clipped(buffer, last=1, done=True)
    assert statistics["train/loop_fraction"] == 0 and statistics["train/failed_ending_fraction"] == 0.5
    np.testing.assert_allclose(buffer.advantages[:, 0], [-1 + 1.8 - 2, -3], rtol=1e-6)
    np.testing.assert_allclose(buffer.returns[:, 0], [0.8, -1], rtol=1e-6)


def test_loops_do_not_reach_into_another_episode() -> None:
    buffer = filled_buffer([[0, 1, 0, 2]], [[1, 0, 1, 0]])
    assert clipped(buffer, last=3, done=False)["train/loop_fraction"] == 0
    buffer = filled_buffer([[0, 1, 0, 2]], [[1, 0, 0, 0]])
    assert clipped(buffer, last=3, done=False)["train/loop_fraction"] == 0.5


def test_a_time_limit_is_no_failure_and_stays_unclipped() -> None:
    buffer = filled_buffer([[0, 1]], [[1, 0]], rewards=-5.0)
    buffer.truncated[1, 0] = True
    statistics = clipped(buffer, last=3, done=True)
    assert statistics["train/failed_ending_fraction"] == 0
    # A_1 = -5 - 2 although R would be -5.2; A_0 = -5 + 1.8 - 2 + .45 * -7 -> clipped to R
    np.testing.assert_allclose(buffer.advantages[:, 0], [-5.2, -7.0], rtol=1e-6)


def test_success_is_no_failure() -> None:
    buffer = filled_buffer([[0, 1]], [[1, 0]], rewards=1.0)
    assert clipped(buffer, last=3, done=True)["train/failed_ending_fraction"] == 0


@pytest.mark.parametrize(
    ("switch", "value"),
    [
        ("clip_gae", False),
        ("clip_lae", False),
        ("clip_n_hop_loops", False),
        ("clip_termination_loops", False),
        ("loop_similarity", 1.0),
        ("advantage_scaling", "rms"),
        ("advantage_scaling", "standard"),
    ],
)
def test_every_switch_changes_the_advantages(switch: str, value: Any) -> None:
    def advantages(**switches: Any) -> np.ndarray:
        buffer = filled_buffer([[0, 1, 1, 2, 0, 3, 3, 4]], [[1, 0, 0, 0, 1, 0, 0, 0]])
        buffer.values[:, 0] = [9, 1, 0, 5, 9, 1, 2, 3]
        clipped(buffer, last=5, done=False, **switches)
        return buffer.advantages.copy()

    assert not np.allclose(advantages(), advantages(**{switch: value}))


@pytest.mark.parametrize("n_envs", [1, 3])
def test_all_switches_off_is_ppo(make: Make, n_envs: int) -> None:
    """Bit for bit up to rounding: same weights as Stable-Baselines3's PPO without advantage normalisation."""
    off = dict.fromkeys(("clip_gae", "clip_lae", "clip_n_hop_loops", "clip_termination_loops"), False)
    ours = make(n_envs=n_envs, advantage_scaling="none", **off).learn(200)
    theirs = make(PPO, n_envs=n_envs, normalize_advantage=False, max_grad_norm=1e9).learn(200)
    for one, other in zip(ours.policy.parameters(), theirs.policy.parameters(), strict=True):
        th.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_time_limits_reach_the_buffer(make: Make) -> None:
    model = make(n_steps=64)
    seen: list[np.ndarray] = []
    model.policy.action_net.bias.data[:] = th.tensor([9.0, -9.0, -9.0])  # stays for ever
    train, model.train = model.train, lambda: (seen.append(model.rollout_buffer.truncated.copy()), train())
    model.learn(64)
    assert np.flatnonzero(seen[0][:, 0]).tolist() == [11, 23, 35, 47, 59]


@pytest.mark.slow
def test_learns_and_is_deterministic(make: Make) -> None:
    def train() -> Any:
        return make(n_steps=128, learning_rate=3e-3, gamma=0.99, n_epochs=5).learn(3000)

    one, other = train(), train()
    for left, right in zip(one.policy.parameters(), other.policy.parameters(), strict=True):
        assert th.equal(left, right)
    actions, _ = one.predict(np.eye(6, dtype=np.float32)[:5], deterministic=True)
    assert actions.tolist() == [1] * 5


def test_logs(make: Make) -> None:
    model = make()
    model.learn(32)
    assert {"train/loop_fraction", "train/clipped_gae_fraction"} <= set(model.logger.name_to_value)


def test_masked(tmp_path: Path) -> None:
    env = InvalidActionEnvDiscrete(dim=20, n_invalid_actions=10)
    model = MaskableLCPO("MlpPolicy", env, n_steps=64, seed=0)
    model.learn(200)
    assert "train/loop_fraction" in model.logger.name_to_value
    model.save(tmp_path / "model")
    MaskableLCPO.load(tmp_path / "model", env=model.get_env()).learn(64)


def test_the_learning_rate_decays_with_the_timesteps(make: Make) -> None:
    model = make(learning_rate=1e-3, learning_rate_decay_steps=64)
    model.learn(256)
    assert model.policy.optimizer.param_groups[0]["lr"] == pytest.approx(
        1e-3 / (1 + model.num_timesteps / 64)
    )
    constant = make(learning_rate=1e-3)
    constant.learn(256)
    assert constant.policy.optimizer.param_groups[0]["lr"] == 1e-3
