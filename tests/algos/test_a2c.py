"""What wrapped algorithms read grids with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.torch_layers import NatureCNN
from stable_baselines3.common.vec_env import DummyVecEnv

from rlexp import registry
from rlexp.algos.common.build import build
from rlexp.networks.cnn import MinAtarCNN, is_small_image
from tests.algos.acer_environments import Chain, Grid, Images


@pytest.mark.parametrize("name", ["a2c", "ppo"])
def test_wrapped_algorithms_read_grids(name: str) -> None:
    env = DummyVecEnv([Grid])
    options: dict[str, Any] = {"policy": "auto", "net_arch": [], "activation_fn": "ReLU", "n_steps": 8}
    model = build(
        registry.algo(name), {**options, **({"batch_size": 8} if name == "ppo" else {})}, env, 0, "cpu"
    )
    assert isinstance(model.policy.features_extractor, MinAtarCNN)
    model.learn(16)
    images = build(registry.algo(name), options, DummyVecEnv([Images]), 0, "cpu")
    assert isinstance(images.policy.features_extractor, NatureCNN)


def test_grids_are_small_images() -> None:
    assert is_small_image(Grid.observation_space)
    assert not is_small_image(Images.observation_space) and not is_small_image(Chain.observation_space)
    network = MinAtarCNN(Grid.observation_space, features_dim=32)
    assert network(th.as_tensor(np.zeros((2, 4, 10, 10)), dtype=th.float32)).shape == (2, 32)
