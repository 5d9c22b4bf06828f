"""Whatever Stable-Baselines3's algorithms change while they learn is in a checkpoint, or is documented not to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from sb3_contrib import RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from rlexp.envs.common.episode_replay import EpisodeReplay
from rlexp.runs import checkpoint
from rlexp.runs.checkpoint.state import NOT_CAPTURED


class OurDQN(DQN):
    """Keeps what is DQN's own as :class:`rlexp.algos.dqn.dqn.DQN` does."""

    def checkpoint_state(self) -> dict[str, Any]:
        return {"n_calls": self._n_calls, "exploration_rate": self.exploration_rate}

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        self._n_calls, self.exploration_rate = state["n_calls"], state["exploration_rate"]


class Newer(PPO):
    """What a later version may bring: an attribute that changes in ``train``."""

    average = 0.0

    def train(self) -> None:
        super().train()
        self.average = 0.9 * self.average + 1


_SEED = {"seed": 3, "device": "cpu"}


def _nets(**more: int) -> dict[str, Any]:
    return {"policy_kwargs": {"net_arch": [8], **more}, **_SEED}  # SB3 changes the inner dictionary


_REPLAY = {"learning_starts": 20, "batch_size": 8, "buffer_size": 500}
_MAKERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "ppo": ("CartPole-v1", lambda env: PPO("MlpPolicy", env, n_steps=16, batch_size=16, **_nets())),
    "a2c": ("CartPole-v1", lambda env: A2C("MlpPolicy", env, **_nets())),
    "sac": ("Pendulum-v1", lambda env: SAC("MlpPolicy", env, **_REPLAY, **_nets())),
    "dqn": (
        "CartPole-v1",
        lambda env: OurDQN("MlpPolicy", env, target_update_interval=9, **_REPLAY, **_nets()),
    ),
    "recurrent_ppo": (
        "CartPole-v1",
        lambda env: RecurrentPPO(
            "MlpLstmPolicy", env, n_steps=16, batch_size=16, **_nets(lstm_hidden_size=8)
        ),
    ),
    "newer": ("CartPole-v1", lambda env: Newer("MlpPolicy", env, n_steps=16, batch_size=16, **_nets())),
}


def _fingerprint(value: Any, depth: int = 0) -> Any:
    """Return what a value says, comparable with ``==``; None for what says nothing but where it is."""
    if isinstance(value, (th.nn.Module, th.optim.Optimizer)):
        return _fingerprint(value.state_dict(), depth)
    if isinstance(value, th.Tensor):
        return (str(value.dtype), value.detach().numpy().tolist())
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.tolist())
    if isinstance(value, (bool, int, float, str, np.generic, type(None))):
        return repr(value)
    if isinstance(value, dict):
        return {str(key): _fingerprint(item, depth) for key, item in value.items()}
    if isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
        return [_fingerprint(item, depth) for item in value]
    if hasattr(value, "__dict__") and depth < 2 and type(value).__module__.startswith(("stable_", "sb3_")):
        return _fingerprint(vars(value), depth + 1)
    return None


_ELSEWHERE = {"env", "_vec_normalize_env"}  # environments have tests and a state of their own


def _differences(one: Any, other: Any) -> set[str]:
    names = (vars(one).keys() | vars(other).keys()) - _ELSEWHERE
    return {
        name
        for name in names
        if _fingerprint(getattr(one, name, "missing")) != _fingerprint(getattr(other, name, "missing"))
    }


class _StopAt(BaseCallback):
    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= 60:
            raise KeyboardInterrupt

    def _on_step(self) -> bool:
        return True


def _not_restored(name: str) -> set[str]:
    """Return attributes of an algorithm that is stopped in the middle, and which resuming does not bring back."""
    environment, make = _MAKERS[name]

    def build() -> Any:
        return make(DummyVecEnv([lambda: EpisodeReplay(Monitor(gymnasium.make(environment)))]))

    fresh, stopped, resumed = build(), build(), build()
    with pytest.raises(KeyboardInterrupt):
        stopped.learn(200, callback=_StopAt())
    assert {"num_timesteps", "policy"} <= _differences(fresh, stopped), "changes are seen"
    checkpoint.restore(resumed, checkpoint.capture(stopped))
    return _differences(stopped, resumed)


@pytest.mark.parametrize("name", [name for name in _MAKERS if name != "newer"])
def test_everything_that_changes_is_captured_or_documented(name: str) -> None:
    assert _not_restored(name) <= NOT_CAPTURED.keys()


def test_an_attribute_that_is_new_is_noticed() -> None:
    assert _not_restored("newer") - NOT_CAPTURED.keys() == {"average"}
