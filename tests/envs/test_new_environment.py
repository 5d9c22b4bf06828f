"""An environment is added by one package and one YAML file; nothing else is touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rlexp.runs import folder as run_folder
from tests import toys
from tests.conftest import Rlexp, only_run

_SPEC = """
from dataclasses import dataclass

from rlexp.config.fields import required, number
from rlexp.registry import EnvSpec


@dataclass
class CorridorConfig:
    name: str = required()
    length: int = number(at_least=2, at_most=50)


SPECS = (
    EnvSpec(
        "corridor", "toys.corridor.env:CorridorEnv", "Walk to the end of a corridor", "discrete", "vector",
        metrics=("walked",), config=CorridorConfig,
    ),
)
"""
_ENV = """
import gymnasium
import numpy as np


class CorridorEnv(gymnasium.Env):
    def __init__(self, length):
        self.observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.walked = 0, 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.place, self.walked = max(0, self.place + (1 if action else -1)), self.walked + 1
        arrived = self.place == self.length
        observation = np.full(1, self.place / self.length, np.float32)
        info = {"is_success": arrived, "walked": float(self.walked)}
        return observation, float(arrived), arrived, self.walked == 4 * self.length, info
"""
_YAML = """
defaults:
  - /schema/env/corridor@_here_
  - _self_

name: corridor
length: 5
"""
_TRAIN = ("algo=ppo", "env=corridor", "algo.n_steps=64", "total_timesteps=256", "logger=none")
_FILES = {
    "corridor/__init__.py": "",
    "corridor/spec.py": _SPEC,
    "corridor/env.py": _ENV,
    "conf/env/corridor.yaml": _YAML,
}


@pytest.fixture
def corridor(tmp_path: Path) -> dict[str, str]:
    """A distribution with one package and one YAML file."""
    return toys.install(tmp_path / "site", "rlexp.envs", _FILES)


def test_without_the_package_there_is_no_such_environment(rlexp: Rlexp, tmp_path: Path) -> None:
    result = rlexp(*_TRAIN, env=toys.install(tmp_path / "site", "rlexp.envs"))
    assert result.returncode == 2 and "corridor" in result.stderr


def test_is_listed_and_trained(rlexp: Rlexp, corridor: dict[str, str], tmp_path: Path) -> None:
    assert "Walk to the end of a corridor" in rlexp("list", "envs", env=corridor).stdout
    result = rlexp(*_TRAIN, env=corridor)
    assert result.returncode == 0, result.stderr
    evaluation = run_folder.read_record(only_run(tmp_path))["evaluation"]
    assert evaluation["n"] == 20 and 5 <= evaluation["walked_mean"] <= 20


def test_its_ranges_are_checked(rlexp: Rlexp, corridor: dict[str, str], tmp_path: Path) -> None:
    result = rlexp(*_TRAIN, "env.length=99", env=corridor)
    assert (
        result.returncode == 2 and "env.length: 99 given" in result.stderr and "at most 50" in result.stderr
    )
    assert not (tmp_path / "outputs").exists()


def test_the_specs_import_neither_gymnasium_nor_torch() -> None:
    code = (
        "import sys\nfrom rlexp import registry\nassert len(registry.envs()) > 12\n"
        "print({'gymnasium', 'torch'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
