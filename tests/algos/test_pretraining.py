"""Pre-training is saved, stopped and resumed like training, and is the same whether or not that happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from rlexp.algos.common import pretraining
from rlexp.algos.dqfd.dqfd import DQfD
from rlexp.algos.r2d3.r2d3 import R2D3
from rlexp.algos.slac.slac import SLAC
from rlexp.envs.common.episode_replay import EpisodeReplay
from rlexp.runs import checkpoint
from tests.algos.recall_environments import Wander, vec
from tests.algos.recurrent_environments import Recall, demonstrate

UPDATES, STEPS = 6, 60  # of pre-training, done in rounds of 2; and of the environment


def build(kind: Any, **kwargs: Any) -> Any:
    if kind is SLAC:
        nets = {"z1_dim": 3, "z2_dim": 4, "model_arch": [7], "net_arch": [9], "actor_units": 8}
        options = {"sequence_length": 4, "pretrain_updates": UPDATES, "policy_kwargs": nets}
        env: Any = vec(Wander)
    else:
        lstm = {"lstm_hidden_size": 8} if kind is R2D3 else {}
        options = {
            "demonstrations": demonstrate(Recall, 4),
            "pretrain_updates": UPDATES,
            "target_update_interval": 4,
            "policy_kwargs": {"net_arch": [8], **lstm},
            **({"sequence_length": 4, "burn_in": 0, "n_steps": 2} if kind is R2D3 else {"n_steps": 2}),
        }
        env = DummyVecEnv([lambda: EpisodeReplay(Monitor(Recall()))])
    shared = {"learning_starts": 20, "batch_size": 4, "buffer_size": 200, "train_freq": 5, "seed": 1}
    return kind("MlpPolicy", env, device="cpu", **{**shared, **options, **kwargs})


def done(model: Any) -> int:
    return int(model._model_updates if isinstance(model, SLAC) else model._n_updates)


class Boundaries(BaseCallback):
    """Notes every rollout boundary; saves and stops at one of them, as a signal would make it."""

    def __init__(self, stop: tuple[int, int] | None = None, folder: Path | None = None) -> None:
        super().__init__()
        self.seen: list[tuple[int, int]] = []
        self._stop, self._folder = stop, folder

    def _on_rollout_start(self) -> None:
        self.seen.append((self.num_timesteps, done(self.model)))
        if self.seen[-1] == self._stop and self._folder is not None:
            checkpoint.save(self._folder, checkpoint.capture(self.model), self.num_timesteps, keep_last=2)
            raise KeyboardInterrupt

    def _on_step(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretraining, "ROUND", 2)


@pytest.mark.parametrize(("kind", "starts"), [(DQfD, 0), (R2D3, 0), (SLAC, 25)])
def test_pre_training_is_stopped_and_resumed_at_each_round(kind: Any, starts: int, tmp_path: Path) -> None:
    undisturbed, boundaries = build(kind), Boundaries()
    undisturbed.learn(STEPS, callback=boundaries)
    rounds = [(starts, updates) for updates in range(0, UPDATES, 2)]
    assert [seen for seen in boundaries.seen if seen in rounds] == rounds, "each round begins at a boundary"
    for number, stop in enumerate(rounds):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(KeyboardInterrupt):
            build(kind).learn(STEPS, callback=Boundaries(stop, folder))
        np.random.seed(99)
        th.manual_seed(99)
        resumed, after = build(kind), Boundaries()
        checkpoint.restore(resumed, checkpoint.load(checkpoint.available(folder)[0]))
        resumed.learn(STEPS - resumed.num_timesteps, callback=after, reset_num_timesteps=False)
        place = boundaries.seen.index(stop)
        assert after.seen == boundaries.seen[place:], "nothing is done twice or left out"
        for name, value in undisturbed.policy.state_dict().items():
            assert th.equal(resumed.policy.state_dict()[name], value), name


@pytest.mark.parametrize("total", [25, 24])
def test_pre_training_of_the_last_rollout(total: int) -> None:
    """Where no rollout follows nobody would come back for the update, so that no run can stop before it."""
    model, boundaries = build(SLAC), Boundaries()
    model.learn(total, callback=boundaries)
    assert done(model) == UPDATES + 1 and model._n_updates == 1
    assert all(updates == 0 for _, updates in boundaries.seen)
    model.learn(5, callback=boundaries, reset_num_timesteps=False)
    assert done(model) == UPDATES + 2, "and only once"


def test_rounds_change_nothing_of_what_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for length in (1, 4, 1000):
        monkeypatch.setattr(pretraining, "ROUND", length)
        model = build(SLAC)
        model.learn(STEPS)
        found.append(model.policy.state_dict())
    for name, value in found[0].items():
        assert all(th.equal(other[name], value) for other in found[1:]), name
