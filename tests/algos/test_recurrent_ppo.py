"""PPO with the shared, layer-normalised LSTM: the cell by hand, gradients, exact state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from sb3_contrib import RecurrentPPO as PlainRecurrentPPO
from sb3_contrib.common.recurrent.type_aliases import RNNStates

from rlexp.algos.recurrent_ppo.policies import SharedLstmPolicy
from rlexp.algos.recurrent_ppo.recurrent_ppo import RecurrentPPO
from rlexp.errors import UsageError
from rlexp.networks.layer_norm_lstm import LayerNormLSTM
from tests.algos.recall_environments import Wander, vec
from tests.conftest import Rlexp

SHARED = {"shared_lstm": True, "enable_critic_lstm": False, "net_arch": [], "lstm_hidden_size": 6}


def build(n_envs: int = 1, nets: dict[str, Any] | None = None, **arguments: Any) -> RecurrentPPO:
    given: dict[str, Any] = {
        "before_lstm": [8, 7],
        "layer_norm": True,
        "critic_trains_lstm": True,
        **arguments,
    }
    more = {"n_steps": 32, "batch_size": 32, "n_epochs": 2, "clip_range_vf": 0.2, "seed": 3, "device": "cpu"}
    kwargs = {**SHARED, **(nets or {})}
    return RecurrentPPO("MlpLstmPolicy", vec(Wander, n_envs), policy_kwargs=kwargs, **{**more, **given})


def norm(values: th.Tensor, layer: th.nn.LayerNorm) -> th.Tensor:
    std = (values.var(correction=0) + 1e-5).sqrt()
    return (values - values.mean()) / std * layer.weight + layer.bias


def test_the_cell_by_hand() -> None:
    th.manual_seed(0)
    lstm = LayerNormLSTM(3, 4)
    with th.no_grad():
        for parameter in lstm.parameters():
            parameter.add_(0.3 * th.randn_like(parameter))
    inputs, h, c = th.randn(5, 2, 3), th.randn(1, 2, 4), th.randn(1, 2, 4)
    found, (last_h, last_c) = lstm(inputs, (h, c))
    for k in range(2):
        hidden, cell = h[0, k], c[0, k]
        for t in range(5):
            gates = norm(lstm.from_input @ inputs[t, k], lstm.input_norm)
            gates = gates + norm(lstm.from_hidden @ hidden, lstm.hidden_norm) + lstm.bias
            i, f, o, g = gates.split(4)
            cell = th.sigmoid(f) * cell + th.sigmoid(i) * th.tanh(g)
            hidden = th.sigmoid(o) * th.tanh(norm(cell, lstm.cell_norm))
            assert th.allclose(found[t, k], hidden, atol=1e-5)
        assert th.allclose(last_h[0, k], hidden, atol=1e-5) and th.allclose(last_c[0, k], cell, atol=1e-5)


@pytest.mark.parametrize("reaches", [True, False])
def test_the_critic_trains_the_lstm(reaches: bool) -> None:
    model = build(critic_trains_lstm=reaches)
    policy = model.policy
    state = (th.zeros(1, 1, 6), th.zeros(1, 1, 6))
    values, _, _ = policy.evaluate_actions(
        th.randn(9, 3), th.zeros(9, 2), RNNStates(state, state), th.tensor([1.0] + [0.0] * 8)
    )
    values.sum().backward()
    inner = [*policy.lstm_actor.parameters(), *policy.features_extractor.parameters()]
    assert all((p.grad is not None and bool(p.grad.any())) == reaches for p in inner)
    optimized = {id(p) for group in policy.optimizer.param_groups for p in group["params"]}
    assert optimized == {id(p) for p in policy.parameters()}


def test_acting_step_by_step_is_the_sequence() -> None:
    model = build()
    seen = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    starts = np.array([k in (0, 5) for k in range(9)])
    state, values, actions = None, [], []
    states = (th.zeros(1, 1, 6), th.zeros(1, 1, 6))
    for k in range(9):
        action, state = model.predict(seen[k : k + 1], state, starts[k : k + 1], deterministic=True)
        actions.append(action[0])
        one = (th.from_numpy(seen[k : k + 1]), RNNStates(states, states), th.tensor([float(starts[k])]))
        with th.no_grad():
            _, value, _, after = model.policy(*one, deterministic=True)
            assert th.equal(value, model.policy.predict_values(one[0], states, one[2]))
        states = after.pi
        values.append(float(value))
    zeros = (th.zeros(1, 1, 6), th.zeros(1, 1, 6))
    found, log_probs, _ = model.policy.evaluate_actions(
        th.from_numpy(seen),
        th.from_numpy(np.stack(actions)),
        RNNStates(zeros, zeros),
        th.from_numpy(starts).float(),
    )
    assert np.allclose(found.detach().flatten().numpy(), values, atol=1e-5)
    assert th.allclose(log_probs, log_probs[:1].expand(9), atol=1e-4), (
        "the most probable action at every step"
    )


def test_without_its_words_it_is_the_plain_one() -> None:
    options: Any = {"n_steps": 16, "batch_size": 16, "seed": 0, "device": "cpu"}
    ours = RecurrentPPO("MlpLstmPolicy", vec(Wander), **options).learn(48).policy.state_dict()
    theirs = PlainRecurrentPPO("MlpLstmPolicy", vec(Wander), **options).learn(48).policy.state_dict()
    assert list(ours) == list(theirs) and all(th.equal(ours[name], theirs[name]) for name in theirs)
    shared = build(layer_norm=False)
    assert type(shared.policy) is SharedLstmPolicy and isinstance(shared.policy.lstm_actor, th.nn.LSTM)
    shared.learn(32)


def test_what_cannot_work_is_rejected(rlexp: Rlexp) -> None:
    with pytest.raises(UsageError, match="shared_lstm"):
        build(nets={"shared_lstm": False, "enable_critic_lstm": True})
    with pytest.raises(UsageError, match="n_lstm_layers"):
        build(nets={"n_lstm_layers": 2})
    arguments = (
        "algo=recurrent_ppo",
        "env=pendulum_v",
        "total_timesteps=128",
        "logger=none",
        "evaluation.episodes=1",
    )
    rejected = rlexp(*arguments, "algo.layer_norm=true")
    assert rejected.returncode == 2 and "shared_lstm" in rejected.stderr
