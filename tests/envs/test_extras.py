"""What a plain installation lacks is answered with the extra to install, before anything is on disk."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rlexp.cli import main

_ENVIRONMENTS = [
    ("ale_py", "atari", ["env=pong"]),
    ("minatar", "minatar", ["env=minatar"]),
    ("minatar", "minatar", ["env=gym", "env.id=MinAtar/Breakout-v1"]),
    ("minigrid", "minigrid", ["env=unlock_pickup"]),
    ("minigrid", "minigrid", ["env=gym", "env.id=MiniGrid-Empty-5x5-v0"]),
    ("Box2D", "box2d", ["env=gym", "env.id=LunarLander-v3"]),
    ("mujoco", "mujoco", ["env=gym", "env.id=HalfCheetah-v5"]),
    ("pyenergyplus", "energy", ["env=datacenter"]),
]


@pytest.mark.parametrize(("package", "extra", "arguments"), _ENVIRONMENTS, ids=lambda value: str(value))
def test_a_missing_package_is_answered_with_the_line_to_type(
    package: str,
    extra: str,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)  # importing it fails, and it counts as not installed
    assert main(["algo=random", *arguments, "total_timesteps=100"]) == 2
    answer = capsys.readouterr().err.strip()
    assert "\n" not in answer and package in answer and f"pip install 'rlexp[{extra}]'" in answer
    assert not any(tmp_path.iterdir())
