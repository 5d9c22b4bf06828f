"""SAC-LSTM: its losses against a loop over single steps, its memory, learning, exact state, the command."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th

from rlexp.algos.sac_lstm.sac_lstm import SACLSTM
from rlexp.errors import UsageError
from rlexp.networks.two_branch import HistoryBranch, TwoBranchHead
from tests.algos.recall_environments import Recall, Wander, vec
from tests.conftest import Rlexp

NETS: dict[str, Any] = {"actor_units": 8, "critic_units": 10, "lstm_hidden_size": 6}
SMALL: dict[str, Any] = {
    "learning_starts": 30,
    "batch_size": 5,
    "sequence_length": 4,
    "burn_in": 3,
    "buffer_size": 300,
    "train_freq": 3,
    "seed": 3,
    "device": "cpu",
}


def build(n_envs: int = 1, **kwargs: Any) -> SACLSTM:
    nets = {**NETS, **kwargs.pop("policy_kwargs", {})}
    return SACLSTM("MlpPolicy", vec(Wander, n_envs), policy_kwargs=nets, **{**SMALL, **kwargs})


def lstm_step(
    branch: HistoryBranch, pair: th.Tensor, h: th.Tensor, c: th.Tensor
) -> tuple[th.Tensor, th.Tensor]:
    """One step of an LSTM, as in any textbook."""
    lstm = branch.lstm
    x = th.relu(branch.embed.weight @ pair + branch.embed.bias)
    gates = lstm.weight_ih_l0 @ x + lstm.bias_ih_l0 + lstm.weight_hh_l0 @ h + lstm.bias_hh_l0
    i, f, g, o = gates.chunk(4)
    c = th.sigmoid(f) * c + th.sigmoid(i) * th.tanh(g)
    return th.sigmoid(o) * th.tanh(c), c


def merge(net: TwoBranchHead, memory: th.Tensor, view: th.Tensor) -> th.Tensor:
    """Both branches side by side, then the joint layers."""
    both = th.cat([memory, th.relu(net.direct.weight @ view + net.direct.bias)])
    return net.head(th.relu(net.both.weight @ both + net.both.bias))


@pytest.mark.parametrize("shared", [False, True])
def test_losses_are_those_of_a_loop_over_steps(shared: bool) -> None:
    model = build(n_envs=2, policy_kwargs={"shared_critic_lstm": shared}, ent_coef=0.2, gamma=0.9)
    model.learn(150)
    with th.no_grad():
        for parameter in model.critic_target.parameters():
            parameter.add_(0.05 * th.randn_like(parameter))
    batch = model.replay_buffer.sample_sequences(12)
    assert (batch.lengths < 4).any() and batch.terminals.any(), "windows cut short by ends are among them"
    th.manual_seed(5)
    noise = th.randn(8, 12, 2)
    th.manual_seed(5)
    actions, log_probs = model.sample_actions(batch)
    value_loss = model.critic_loss(batch, actions, log_probs, model._ent_coef())
    policy_loss = model.actor_loss(batch, actions, log_probs, model._ent_coef())
    with th.no_grad():
        actor_terms, critic_terms = _by_steps(model, batch, noise, log_probs, shared)
    assert value_loss.item() == pytest.approx(np.mean(critic_terms), rel=1e-4)
    assert policy_loss.item() == pytest.approx(np.mean(actor_terms), rel=1e-4)


def _by_steps(model: SACLSTM, batch: Any, noise: th.Tensor, log_probs: th.Tensor, shared: bool) -> Any:
    """Return the actor's and the critics' loss of every step."""
    actor_terms, critic_terms = [], []
    alpha = 0.2
    for k in range(12):
        first, n = int(batch.burn_in[k]), int(batch.lengths[k])
        h, c = th.zeros(6), th.zeros(6)
        states = {
            (net, i): (th.zeros(6), th.zeros(6)) for net in ("critic", "critic_target") for i in range(2)
        }
        q: dict[tuple[str, int, str], th.Tensor] = {}
        log_pi: dict[int, th.Tensor] = {}
        for p in range(first + n + 1):
            seen = batch.observations[p, k]
            pair = th.cat([batch.previous_actions[p, k], seen])
            h, c = lstm_step(model.actor.memory, pair, h, c)
            mean, log_std = merge(model.actor.merged, h, seen).chunk(2)
            raw = mean + log_std.exp() * noise[p, k]
            action = th.tanh(raw)
            normal = th.distributions.Normal(mean, log_std.exp())
            log_pi[p] = (normal.log_prob(raw) - th.log(1 - action.square() + 1e-12)).sum()
            for net in ("critic", "critic_target"):
                nets: Any = getattr(model, net)
                for i in range(2):
                    branch = nets.memories[0 if shared else i]
                    states[net, i] = lstm_step(branch, pair, *states[net, i])
                    q[net, i, f"own{p}"] = merge(nets.values[i], states[net, i][0], th.cat([seen, action]))
                    if p < first + n:
                        done = th.cat([seen, batch.actions[p, k]])
                        q[net, i, f"done{p}"] = merge(nets.values[i], states[net, i][0], done)
        for p in range(first, first + n):
            following = min(float(q["critic_target", i, f"own{p + 1}"]) for i in range(2))
            going_on = 0.9 * (1 - float(batch.terminals[p, k])) * (following - alpha * float(log_pi[p + 1]))
            target = float(batch.rewards[p, k]) + going_on
            critic_terms.append(
                sum(0.5 * (float(q["critic", i, f"done{p}"]) - target) ** 2 for i in range(2))
            )
            lowest = min(float(q["critic", i, f"own{p}"]) for i in range(2))
            actor_terms.append(alpha * float(log_pi[p]) - lowest)
            assert log_probs[p, k].item() == pytest.approx(float(log_pi[p]), abs=1e-4)
    return actor_terms, critic_terms


def test_gradients_go_where_they_belong() -> None:
    model = build()
    model.learn(60)
    batch = model.replay_buffer.sample_sequences(6)
    actions, log_probs = model.sample_actions(batch)
    value_loss = model.critic_loss(batch, actions, log_probs, model._ent_coef())
    policy_loss = model.actor_loss(batch, actions, log_probs, model._ent_coef())
    for loss, mine, others in (
        (value_loss, model.critic, (model.actor, model.critic_target)),
        (policy_loss, model.actor, (model.critic, model.critic_target)),
    ):
        model.policy.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.any() for p in mine.parameters())
        assert not any(p.grad is not None and p.grad.any() for net in others for p in net.parameters())
    assert all(p.requires_grad for p in model.critic.parameters())


@pytest.mark.parametrize("shared", [False, True])
def test_an_update_is_that_of_sac_written_out(shared: bool) -> None:
    """Entropy coefficient, critics, then the actor against the new critics, with an optimizer that is not fused."""
    lr, gamma, tau = 0.1, 0.9, 0.05
    nets = {"shared_critic_lstm": shared, "optimizer_class": th.optim.SGD}
    model = build(policy_kwargs=nets, gamma=gamma, tau=tau, learning_rate=lr, max_grad_norm=np.inf)
    model.learn(60)
    batch = model.replay_buffer.sample_sequences(5)
    model.replay_buffer.sample_sequences = lambda *_, **__: batch  # type: ignore[method-assign, assignment]
    actor, critic, target = (copy.deepcopy(net) for net in (model.actor, model.critic, model.critic_target))
    assert model.log_ent_coef is not None
    alpha = model.log_ent_coef.detach().exp()
    th.manual_seed(9)
    noise = th.randn(8, 5, 2)
    th.manual_seed(9)
    model.train(1, 5)

    seen, past = batch.observations, batch.previous_actions
    mean, log_std, _ = actor(seen, past)
    normal = th.distributions.Normal(mean, log_std.exp())
    raw = mean + log_std.exp() * noise
    actions = th.tanh(raw)
    log_pi = (normal.log_prob(raw) - th.log(1 - actions.square() + 1e-12)).sum(-1)
    count = batch.mask.sum()
    with th.no_grad():
        following = (
            th.minimum(*target(target.encode_history(seen, past), seen, actions))[1:] - alpha * log_pi[1:]
        )
        y = batch.rewards + gamma * (1 - batch.terminals) * following

    def descend(net: th.nn.Module, loss: th.Tensor) -> None:
        gradients = th.autograd.grad(loss, list(net.parameters()), retain_graph=True)
        with th.no_grad():
            for parameter, gradient in zip(net.parameters(), gradients, strict=True):
                parameter -= lr * gradient

    old = [parameter.clone() for parameter in critic.parameters()]
    done = critic(critic.encode_history(seen[:-1], past[:-1]), seen[:-1], batch.actions)
    descend(critic, sum((0.5 * (q - y).square() * batch.mask).sum() / count for q in done))
    # The bias of the first critic's last layer moves by the mean TD error: the gradient by hand.
    bias = model.critic.values[0].head[-1].bias
    name = next(k for k, parameter in enumerate(model.critic.parameters()) if parameter is bias)
    by_hand = (((done[0] - y) * batch.mask).sum() / count).detach()
    assert th.allclose(bias, old[name] - lr * by_hand, atol=1e-6)
    with th.no_grad():
        history = critic.encode_history(seen[:-1], past[:-1])
    rated = th.minimum(*critic(history, seen[:-1], actions[:-1]))
    descend(actor, ((alpha * log_pi[:-1] - rated) * batch.mask).sum() / count)
    for found, wanted in ((model.critic, critic), (model.actor, actor)):
        for parameter, expected in zip(found.parameters(), wanted.parameters(), strict=True):
            assert th.allclose(parameter, expected, atol=1e-6)
    for parameter, before, new in zip(
        model.critic_target.parameters(), target.parameters(), critic.parameters(), strict=True
    ):
        assert th.allclose(parameter, (1 - tau) * before + tau * new, atol=1e-6)


def test_acting_step_by_step_is_the_sequence() -> None:
    model = build(n_envs=2)
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(7, 2, 3)).astype(np.float32)
    state, actions = None, []
    for step in range(7):
        starts = np.array([step == 0, step in (0, 4)])
        action, state = model.predict(seen[step], state, starts, deterministic=True)
        actions.append(action / 2.0)  # the environment's own range is [-2, 2]
    assert state is not None and [part.shape for part in state] == [(2, 6), (2, 6), (2, 2)]
    for env, first in ((0, 0), (1, 4)):
        done = np.stack([np.zeros(2, np.float32), *[actions[t][env] for t in range(first, 6)]])[:, None]
        mean, _, _ = model.actor(th.from_numpy(seen[first:, env : env + 1]), th.from_numpy(done))
        expected = np.stack([actions[t][env] for t in range(first, 7)])
        assert np.allclose(th.tanh(mean[:, 0]).detach().numpy(), expected, atol=1e-5)
    single, _ = model.predict(seen[0, 0], deterministic=True)
    assert single.shape == (2,) and np.allclose(single, actions[0][0] * 2, atol=1e-5)


def test_the_memory_is_kept_while_actions_are_random() -> None:
    model = build(n_envs=2, learning_starts=1000)
    model.learn(41 * 2)
    row = model.replay_buffer.pos - 1
    assert model._last_lstm_states is not None
    hidden, _, previous = model._last_lstm_states
    assert np.allclose(previous, model.replay_buffer.actions[row])
    for env in range(2):
        begin = row
        while begin > 0 and not model.replay_buffer.dones[begin - 1, env]:
            begin -= 1
        seen = model.replay_buffer.observations[begin : row + 1, env]
        done = np.concatenate([np.zeros((1, 2), np.float32), model.replay_buffer.actions[begin:row, env]])
        memories, _ = model.actor.memory(th.from_numpy(seen[:, None]), th.from_numpy(done[:, None]))
        assert np.allclose(memories[-1, 0].detach().numpy(), hidden[env], atol=1e-5)


def test_it_remembers() -> None:
    arguments: dict[str, Any] = {
        "learning_rate": 3e-3,
        "train_freq": 2,
        "batch_size": 16,
        "sequence_length": 6,
        "burn_in": 0,
    }
    nets = {"actor_units": 32, "critic_units": 32, "lstm_hidden_size": 32}
    arguments |= {"gamma": 0.5, "ent_coef": 0.05}
    model = SACLSTM("MlpPolicy", vec(Recall), policy_kwargs=nets, **{**SMALL, **arguments})
    model.learn(600)
    environment, total = Recall(), 0.0
    for seed in range(20):
        seen, _ = environment.reset(seed=seed)
        state = None
        for _ in range(environment.length):
            action, state = model.predict(seen, state, deterministic=True)
            seen, reward, *_ = environment.step(action)
            total += reward
    assert total / 20 > 0.8 * environment.length


@pytest.mark.parametrize("ent_coef", ["auto_0.1", 0.3])
def test_entropy_coefficient(ent_coef: str | float) -> None:
    model = build(ent_coef=ent_coef)
    model.learn(60)
    found = float(model._ent_coef())
    assert (found == pytest.approx(0.3)) == (ent_coef == 0.3)
    assert found != pytest.approx(0.1, abs=1e-6)


def test_what_cannot_work_is_rejected() -> None:
    with pytest.raises(UsageError, match="MlpPolicy"):
        SACLSTM("CnnPolicy", vec(Wander))


def test_the_command(rlexp: Rlexp, tmp_path: Path) -> None:
    arguments = (
        "algo=sac_lstm",
        "env=pendulum_v",
        "total_timesteps=60",
        "logger=none",
        "evaluation.episodes=1",
    )
    small = ("algo.learning_starts=50", "algo.lstm_hidden_size=8", "env.max_steps=20")
    done = rlexp(*arguments, *small)
    assert done.returncode == 0, done.stderr
    for wrong, hint in (
        ("algo.sequence_length=0", "algo.sequence_length"),
        ("algo.sequence_lenght=5", "sequence_length"),
    ):
        rejected = rlexp(*arguments, wrong)
        assert rejected.returncode == 2 and hint in rejected.stderr
    incompatibility = rlexp(*arguments, "env=cartpole_p", "env.actions=discrete")
    assert incompatibility.returncode == 2 and "continuous" in incompatibility.stderr
