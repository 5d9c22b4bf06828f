"""An algorithm is added by one package and one YAML file; nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlexp.runs import folder as run_folder
from tests import toys
from tests.conftest import Rlexp, only_run

_SPEC = """
from dataclasses import dataclass

from rlexp.algos.ppo.spec import PPOConfig
from rlexp.config.fields import number
from rlexp.registry import AlgoSpec


@dataclass
class NoisyPPOConfig(PPOConfig):
    noise: float = number(at_least=0, at_most=1, formerly="shaking")
    log_std_init: float = number(policy=True)


SPECS = (
    AlgoSpec(
        "noisy_ppo", "toys.noisy_ppo.noisy_ppo:NoisyPPO", "PPO whose rewards are shaken", ("discrete", "continuous"),
        ("vector",), config=NoisyPPOConfig,
    ),
)
"""
_ALGORITHM = """
import numpy as np
from stable_baselines3 import PPO

from rlexp.algos.common.base import ValidatedAlgorithm
from toys.noisy_ppo.spec import NoisyPPOConfig


class NoisyPPO(ValidatedAlgorithm, PPO):
    config = NoisyPPOConfig

    def __init__(self, policy, env, noise=0.1, **ppo):
        self.noise = noise
        super().__init__(policy, env, **ppo)

    def train(self):
        assert self.policy.log_std_init == -1
        self.rollout_buffer.rewards += self.noise * np.random.standard_normal(self.rollout_buffer.rewards.shape)
        super().train()
        self.logger.record("train/noise", self.noise)
"""
_YAML = """
defaults:
  - ppo
  - /schema/algo/noisy_ppo@_here_
  - _self_

name: noisy_ppo
n_steps: 64
noise: 0.25
log_std_init: -1.0
"""
_TRAIN = ("algo=noisy_ppo", "env=gym", "env.id=CartPole-v1", "total_timesteps=128", "logger=none",
          "evaluation.episodes=2")  # fmt: skip
_FILES = {
    "noisy_ppo/__init__.py": "",
    "noisy_ppo/spec.py": _SPEC,
    "noisy_ppo/noisy_ppo.py": _ALGORITHM,
    "conf/algo/noisy_ppo.yaml": _YAML,
}


@pytest.fixture
def noisy_ppo(tmp_path: Path) -> dict[str, str]:
    """A distribution with one package and one YAML file."""
    return toys.install(tmp_path / "site", "rlexp.algos", _FILES)


def test_without_the_package_there_is_no_such_algorithm(rlexp: Rlexp, tmp_path: Path) -> None:
    result = rlexp(*_TRAIN, env=toys.install(tmp_path / "site", "rlexp.algos"))
    assert result.returncode == 2 and "noisy_ppo" in result.stderr


def test_is_listed_and_trained(rlexp: Rlexp, noisy_ppo: dict[str, str], tmp_path: Path) -> None:
    shown = rlexp("list", "algos", env=noisy_ppo).stdout
    assert shown.index("lcpo") < shown.index("PPO whose rewards are shaken") < shown.index("handcrafted")
    result = rlexp(*_TRAIN, env=noisy_ppo)
    assert result.returncode == 0, result.stderr
    assert run_folder.read_record(only_run(tmp_path))["evaluation"]["n"] == 2
    assert run_folder.read_jsonl(only_run(tmp_path) / run_folder.METRICS)[-1]["train/noise"] == 0.25


@pytest.mark.parametrize(
    ("argument", "answer"),
    [
        ("algo.noise=2", "algo.noise: 2.0 given, must be at least 0 and at most 1"),
        ("algo.nois=0.5", "did you mean 'algo.noise'?"),
        ("algo.shaking=0.5", "algo.shaking: is now called algo.noise"),
        ("algo.batch_size=65", "algo.batch_size: 65 given, allowed is at most"),
    ],
)
def test_its_settings_are_checked(
    rlexp: Rlexp, noisy_ppo: dict[str, str], tmp_path: Path, argument: str, answer: str
) -> None:
    result = rlexp(*_TRAIN, argument, env=noisy_ppo)
    assert result.returncode == 2 and answer in result.stderr, result.stderr
    assert not (tmp_path / "outputs").exists()
