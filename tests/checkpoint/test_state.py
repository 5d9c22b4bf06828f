"""What is restored is what was captured, or nothing."""

from __future__ import annotations

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
