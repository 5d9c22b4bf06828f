"""TAM as a Stable-Baselines3 citizen: the mask that it learns, and exact state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

from rlexp.algos.tam.replay import TransitionReplay
from rlexp.algos.tam.tam import TAM

Make = Callable[..., TAM]
PLACES = th.eye(6)[:5]


@pytest.fixture
def make(corridor: type) -> Make:
    """Build TAM on the corridor, small settings by default."""

    def build(n_envs: int = 1, **kwargs: Any) -> TAM:
        kwargs = {"n_steps": 64, "batch_size": 16, "n_epochs": 2, "mask_after": 128, "seed": 0, **kwargs}
        return TAM("MlpPolicy", make_vec_env(corridor, n_envs), device="cpu", **kwargs)

    return build


def parameters(model: TAM) -> list[th.Tensor]:
    return [value.clone() for value in model.policy.state_dict().values()]


@pytest.mark.slow
@pytest.mark.parametrize("n_envs", [1, 3])
def test_learns_to_block_loops_and_failures(make: Make, n_envs: int) -> None:
    model = make(n_envs, user_model_updates=100).learn(1500)
    probabilities = model.policy.get_distribution(PLACES).distribution.probs
    # 'stay' and 'quit' are blocked wherever they have been tried; only 'right' is left.
    assert (probabilities[:3, 1] > 0.999).all()


def test_no_mask_before_its_time(make: Make) -> None:
    model = make(mask_after=65).learn(64)
    assert not model.policy.masking
    model.learn(64, reset_num_timesteps=False)
    assert model.policy.masking


def test_taken_and_evaluated_under_the_same_mask(make: Make) -> None:
    model = make().learn(256)
    assert model.policy.masking
    actions, values, taken = model.policy(PLACES)
    again, evaluated, _ = model.policy.evaluate_actions(PLACES, actions)
    th.testing.assert_close(taken, evaluated)
    th.testing.assert_close(values, again)


def test_the_user_model_has_an_optimizer_of_its_own(make: Make) -> None:
    model = make()
    of_policy = {id(p) for group in model.policy.optimizer.param_groups for p in group["params"]}
    assert not any(id(p) in of_policy for p in model.policy.user_model.parameters())
    model.learn(64)
    assert all(p.grad is None for p in model.policy.user_model.parameters())


def test_what_is_remembered(make: Make) -> None:
    model = make(n_steps=40)
    model.policy.action_net.bias.data[:] = th.tensor([9.0, -9.0, -9.0])  # stays for ever
    model.learn(40)
    kept = model.replay.fields
    # Three time limits of 12 steps among 40 transitions: those three are left out.
    assert len(model.replay) == 37
    assert kept["similar"][:37].all() and kept["has_next"][:37].all() and not kept["terminated"].any()
    model = make(n_steps=40)
    model.policy.action_net.bias.data[:] = th.tensor([-9.0, 9.0, -9.0])  # walks
    model.learn(40)
    kept = model.replay.fields
    assert np.flatnonzero(kept["terminated"][:40]).tolist() == [4, 9, 14, 19, 24, 29, 34, 39]
    assert (kept["rewards"][:40] == np.tile([-1, -1, -1, -1, 5], 8)).all()
    assert (kept["actions"][:40] == 1).all() and (kept["observations"][:10:5, 0] == 1).all()
    assert not kept["similar"][:40][kept["has_next"][:40] > 0].any()


@pytest.mark.parametrize("steps", [1, 20, 39])
def test_a_rollout_that_a_callback_stopped_is_forgotten(make: Make, steps: int) -> None:
    class Stop(BaseCallback):
        def _on_step(self) -> bool:
            return self.n_calls < steps

    model = make(n_steps=40)
    model.policy.action_net.bias.data[:] = th.tensor([9.0, -9.0, -9.0])  # stays for ever
    model.learn(40, callback=Stop())
    assert model.num_timesteps == steps and len(model.replay) == 0
    model.learn(40)
    # The whole rollout but its three time limits of 12 steps, each left out at its own place.
    assert len(model.replay) == 37 and model.replay.fields["has_next"][:37].all()
    assert (model.replay.fields["rewards"][:37] == -1).all(), "no bootstrapped value of a time limit"


def test_replay_is_a_ring() -> None:
    replay = TransitionReplay(5, 2)

    def add(*numbers: int) -> None:
        flat = np.array(numbers)
        fields = dict.fromkeys(("terminated", "rewards", "similar", "has_next"), flat)
        replay.add(observations=np.stack([flat, flat], axis=1), actions=flat, **fields)

    add(0, 1, 2)
    assert len(replay) == 3
    add(3, 4, 5, 6)
    assert len(replay) == 5 and sorted(replay.fields["actions"]) == [2, 3, 4, 5, 6]
    other = TransitionReplay(5, 2)
    other.restore(replay.state())
    assert other.added == 7 and all((other.fields[k] == v).all() for k, v in replay.fields.items())
    batch = replay.sample(64, th.device("cpu"))
    assert set(batch.actions.tolist()) == {2, 3, 4, 5, 6}
    assert (batch.observations[:, 0] == batch.rewards).all()
