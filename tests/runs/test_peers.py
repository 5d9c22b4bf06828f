"""A run is what Stable-Baselines3 trains by itself when it is given what RL-Zoo says, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import stable_baselines3
import torch as th
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

import rlexp

# As in RL-Zoo's hyperparams/*.yml: environment, number of environments, normalisation, arguments.
_PUBLISHED: list[tuple[str, str, int, bool, dict[str, Any]]] = [
    ("PPO", "CartPole-v1", 8, False,
     {"n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "n_epochs": 20,
      "learning_rate": lambda left: left * 1e-3, "clip_range": lambda left: left * 0.2}),
    ("A2C", "MountainCarContinuous-v0", 4, True,
     {"n_steps": 100, "gamma": 0.99, "use_sde": True, "sde_sample_freq": 16,
      "policy_kwargs": {"log_std_init": 0.0, "ortho_init": False}}),
    ("PPO", "MountainCarContinuous-v0", 1, True,
     {"batch_size": 256, "n_steps": 8, "gamma": 0.9999, "learning_rate": 7.77e-5, "ent_coef": 0.00429,
      "clip_range": 0.1, "n_epochs": 10, "gae_lambda": 0.9, "max_grad_norm": 5, "vf_coef": 0.19, "use_sde": True,
      "policy_kwargs": {"log_std_init": -3.29, "ortho_init": False}}),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
@pytest.mark.parametrize(
    ("algo", "id", "n_envs", "normalize", "arguments"),
    _PUBLISHED,
    ids=[f"{one[0]}-{one[1]}" for one in _PUBLISHED],
)
def test_equal_weights(
    algo: str,
    id: str,
    n_envs: int,
    normalize: bool,
    arguments: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    steps = 3 * n_envs * arguments["n_steps"]
    ours = rlexp.train(
        f"algo={algo.lower()}",
        f"env={id}",
        total_timesteps=steps,
        logger="none",
        **{"evaluation.episodes": 0},
    ).model
    env = make_vec_env(id, n_envs)
    if normalize:
        env = VecNormalize(env, gamma=arguments["gamma"])
    theirs = getattr(stable_baselines3, algo)("MlpPolicy", env, seed=0, device="cpu", **arguments)
    theirs.learn(steps)
    expected = theirs.policy.state_dict()
    found = ours.policy.state_dict()
    assert found.keys() == expected.keys()
    assert all(th.equal(found[name], expected[name]) for name in expected)


class _OneEnvironment(ReplayBuffer):
    """Draws no environment, of which there is one: our buffer draws from the same stream of random numbers then."""

    def _get_samples(self, batch_inds: Any, env: Any = None) -> Any:
        with mock.patch("numpy.random.randint", lambda low, high, size: np.zeros(size, int)):
            return super()._get_samples(batch_inds, env)


def test_dqn_agrees_to_rounding_on_the_same_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    steps = 1280
    ours = rlexp.train(
        "algo=dqn", "env=CartPole-v1", total_timesteps=steps, logger="none", **{"evaluation.episodes": 0}
    ).model
    theirs = stable_baselines3.DQN(
        "MlpPolicy", make_vec_env("CartPole-v1", 1), replay_buffer_class=_OneEnvironment, seed=0, device="cpu",
        learning_rate=2.3e-3, batch_size=64, buffer_size=100_000, learning_starts=1000, gamma=0.99,
        target_update_interval=10, train_freq=256, gradient_steps=128, exploration_fraction=0.16,
        exploration_final_eps=0.04, policy_kwargs={"net_arch": [256, 256]},
    ).learn(steps)  # fmt: skip
    assert theirs._n_updates > 128
    expected = theirs.policy.state_dict()
    for name, found in ours.policy.state_dict().items():
        th.testing.assert_close(found, expected[name], rtol=1e-4, atol=1e-5)
