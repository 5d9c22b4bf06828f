"""A2C as a wrapped baseline: it resumes exactly, rows of its log included; and what grids are read with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.torch_layers import NatureCNN
from stable_baselines3.common.vec_env import DummyVecEnv

from rlexp import checkpoint, registry
from rlexp.algos.a2c import A2C
from rlexp.algos.build import build
from rlexp.envs.episode_replay import EpisodeReplay
from rlexp.networks.torso import GridNet, is_grid
from tests.algos.acer_tasks import Chain, Grid, Pictures
from tests.algos.test_acer import _Rows
from tests.safe_point import StopAt


def test_resume_is_exact(tmp_path: Path) -> None:
    def start() -> tuple[A2C, _Rows]:
        env = DummyVecEnv([lambda: EpisodeReplay(Monitor(Chain()))] * 2)
        model, rows = A2C("MlpPolicy", env, seed=0, device="cpu", policy_kwargs={"net_arch": [16]}), _Rows()
        model.set_logger(Logger(None, [rows]))
        return model, rows

    undisturbed, expected = start()
    undisturbed.learn(600, log_interval=7)
    first, rows = start()
    stop = StopAt(300)
    first.learn(600, callback=stop, log_interval=7)
    assert stop.state is not None
    state = checkpoint.load(checkpoint.save(tmp_path, stop.state, 1, keep=1))
    resumed, rows_after = start()
    checkpoint.restore(resumed, state)
    checkpoint.restore_pending_metrics(resumed, state)
    resumed.learn(600 - resumed.num_timesteps, reset_num_timesteps=False, log_interval=7)
    for name, value in undisturbed.policy.state_dict().items():
        assert th.equal(value, resumed.policy.state_dict()[name]), name
    assert len(expected.rows) == 600 // 70, "every seventh rollout of ten steps"
    assert expected.without_times() == rows.without_times() + rows_after.without_times()


@pytest.mark.parametrize("name", ["a2c", "ppo"])
def test_wrapped_algorithms_read_grids(name: str) -> None:
    env = DummyVecEnv([Grid])
    options: dict[str, Any] = {"policy": "auto", "net_arch": [], "activation_fn": "ReLU", "n_steps": 8}
    model = build(
        registry.algo(name), {**options, **({"batch_size": 8} if name == "ppo" else {})}, env, 0, "cpu"
    )
    assert isinstance(model.policy.features_extractor, GridNet)
    model.learn(16)
    pictures = build(registry.algo(name), options, DummyVecEnv([Pictures]), 0, "cpu")
    assert isinstance(pictures.policy.features_extractor, NatureCNN)


def test_grids_are_small_pictures() -> None:
    assert is_grid(Grid.observation_space)
    assert not is_grid(Pictures.observation_space) and not is_grid(Chain.observation_space)
    network = GridNet(Grid.observation_space, features_dim=32)
    assert network(th.as_tensor(np.zeros((2, 4, 10, 10)), dtype=th.float32)).shape == (2, 32)
