"""Checkpoints are atomic, pickle-free and survive damage to the newest."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from rlexp import checkpoint
from rlexp.envs.episode_replay import EpisodeReplay
from tests.safe_point import StopAt

_TREE: dict[str, Any] = {
    "tensor": th.arange(6, dtype=th.float32).reshape(2, 3),
    "array": np.arange(4, dtype=np.uint8),
    "by_number": {0: {"step": th.tensor(3.0)}, 1: {"step": th.tensor(4.0)}},
    "pair": (1, 2.5),
    "text": "x",
    "nothing": None,
    "large": 2**100,
}


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, (th.Tensor, np.ndarray)):
        return type(one) is type(other) and one.dtype == other.dtype and bool((one == other).all())
    return bool(one == other)


def test_round_trip(tmp_path: Path) -> None:
    assert _same(_TREE, checkpoint.load(checkpoint.save(tmp_path, _TREE, 10, keep=2)))


def test_only_the_last_ones_stay(tmp_path: Path) -> None:
    for step in (10, 20, 30, 1000):
        checkpoint.save(tmp_path, {"step": step}, step, keep=2)
    assert [int(path.name) for path in checkpoint.available(tmp_path)] == [1000, 30]


def test_nothing_unpickles(tmp_path: Path) -> None:
    folder = checkpoint.save(tmp_path, _TREE, 10, keep=1)
    assert sorted(path.name for path in folder.iterdir()) == ["arrays.npz", "state.json"]
    json.loads((folder / "state.json").read_text())
    with np.load(folder / "arrays.npz", allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
    with pytest.raises(TypeError, match="cannot hold"):
        checkpoint.save(tmp_path, {"object": object()}, 20, keep=1)


def _truncate(folder: Path) -> None:
    path = folder / "arrays.npz"
    path.write_bytes(path.read_bytes()[:-200])


def _flip(folder: Path) -> None:
    path = folder / "arrays.npz"
    with zipfile.ZipFile(path) as archive:
        info = next(info for info in archive.infolist() if info.filename == "state.big.npy")
    content = bytearray(path.read_bytes())
    content[info.header_offset + 4000] ^= 0xFF
    path.write_bytes(bytes(content))


def _lose(folder: Path) -> None:
    (folder / "state.json").unlink()


@pytest.mark.parametrize("damage", [_truncate, _flip, _lose])
def test_damage_falls_back_to_the_one_before(tmp_path: Path, damage: Any) -> None:
    for step in (10, 20):
        checkpoint.save(tmp_path, {"step": step, "big": np.ones(10_000)}, step, keep=2)
    damage(tmp_path / f"{20:012d}")
    with pytest.warns(UserWarning, match="damaged checkpoint"):
        found = checkpoint.load_newest(tmp_path)
    assert found is not None and found[1]["step"] == 10


def test_a_checkpoint_that_was_being_written_is_not_seen(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"step": 1}, 1, keep=3)
    (tmp_path / ".000000000002.77").mkdir()
    assert [int(path.name) for path in checkpoint.available(tmp_path)] == [1]
    checkpoint.save(tmp_path, {"step": 3}, 3, keep=3)
    assert not list(tmp_path.glob(".*")), "leftovers of a kill are swept away"


_MAKERS = {
    "ppo": ("CartPole-v1", lambda env: PPO("MlpPolicy", env, n_steps=32, batch_size=16, seed=3), 400),
    "recurrent_ppo": (
        "CartPole-v1",
        lambda env: RecurrentPPO(
            "MlpLstmPolicy",
            env,
            n_steps=32,
            batch_size=16,
            n_epochs=2,
            seed=3,
            policy_kwargs={"lstm_hidden_size": 8},
        ),
        200,
    ),
    "sac": (
        "Pendulum-v1",
        lambda env: SAC(
            "MlpPolicy", env, learning_starts=40, batch_size=16, seed=3, policy_kwargs={"net_arch": [16]}
        ),
        330,
    ),
}


@pytest.mark.parametrize("n_envs", [1, 2])
@pytest.mark.parametrize("name", _MAKERS)
def test_resume_is_exact(tmp_path: Path, name: str, n_envs: int) -> None:
    task, make, total = _MAKERS[name]

    def build() -> Any:
        return make(DummyVecEnv([lambda: EpisodeReplay(Monitor(gymnasium.make(task)))] * n_envs))

    undisturbed = build()
    undisturbed.learn(total)
    stop = StopAt(total // 2)
    build().learn(total, callback=stop)
    assert stop.state is not None
    state = checkpoint.load(checkpoint.save(tmp_path, stop.state, 1, keep=1))
    th.manual_seed(99)  # whatever the new process drew before it resumed must not matter
    np.random.seed(99)
    resumed = build()
    checkpoint.restore(resumed, state)
    resumed.learn(total - resumed.num_timesteps, reset_num_timesteps=False)
    assert resumed.num_timesteps == undisturbed.num_timesteps
    for one, other in zip(undisturbed.policy.parameters(), resumed.policy.parameters(), strict=True):
        assert th.equal(one, other)


def test_a_task_that_is_not_decided_by_its_random_state_is_noticed() -> None:
    class Drifting(gymnasium.ObservationWrapper[Any, Any, Any]):
        calls = 0

        def observation(self, observation: Any) -> Any:
            Drifting.calls += 1
            return observation + np.float32(Drifting.calls)

    def build() -> Any:
        env = DummyVecEnv([lambda: EpisodeReplay(Drifting(gymnasium.make("CartPole-v1")))])
        return PPO("MlpPolicy", env, n_steps=16, batch_size=8)

    stop = StopAt(32)
    build().learn(100, callback=stop)
    assert stop.state is not None
    with pytest.raises(checkpoint.CheckpointError, match="did not arrive"):
        checkpoint.restore(build(), stop.state)
