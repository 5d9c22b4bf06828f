"""What is restored is what was captured, or nothing."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from rlexp.envs.common.episode_replay import EpisodeReplay
from rlexp.runs import checkpoint


def test_a_task_that_is_not_decided_by_its_random_state_is_noticed() -> None:
    class Drifting(gymnasium.ObservationWrapper[Any, Any, Any]):
        calls = 0

        def observation(self, observation: Any) -> Any:
            Drifting.calls += 1
            return observation + np.float32(Drifting.calls)

    def build() -> Any:
        env = DummyVecEnv([lambda: EpisodeReplay(Drifting(gymnasium.make("CartPole-v1")))])
        return PPO("MlpPolicy", env, n_steps=16, batch_size=8)

    state = checkpoint.capture(build().learn(32))
    with pytest.raises(checkpoint.CheckpointError, match="did not reach"):
        checkpoint.restore(build(), state)
