"""SLAC: its losses against loops over single steps, indices, gradients, its memory, exact state, the command."""

from __future__ import annotations

import copy
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from torch.distributions import Normal, kl_divergence

from rlexp.algos.slac.slac import SLAC
from rlexp.buffers.sequence_replay import SequenceBatch
from rlexp.envs.partial.env import pendulum
from rlexp.errors import UsageError
from tests.algos.recall_environments import Wander, vec
from tests.conftest import Rlexp

NETS: dict[str, Any] = {
    "z1_dim": 3,
    "z2_dim": 4,
    "model_arch": [7],
    "net_arch": [9],
    "actor_units": 8,
    "lstm_hidden_size": 6,
}
SMALL: dict[str, Any] = {
    "learning_starts": 30,
    "pretrain_updates": 4,
    "batch_size": 5,
    "sequence_length": 4,
    "actor_burn_in": 6,
    "buffer_size": 300,
    "train_freq": 5,
    "seed": 3,
    "device": "cpu",
}
STEPS = 100


def build(
    n_envs: int = 1, environment: Any = Wander, nets: dict[str, Any] | None = None, **kwargs: Any
) -> SLAC:
    return SLAC(
        "MlpPolicy", vec(environment, n_envs), policy_kwargs={**NETS, **(nets or {})}, **{**SMALL, **kwargs}
    )


def drawn(model: SLAC, n: int = 12) -> tuple[SequenceBatch, list[list[int]]]:
    """Return windows and, for each, the rows of the buffer that it should hold, found the slow way."""
    buffer = model.replay_buffer
    rng = np.random.default_rng(0)
    items = rng.integers(0, buffer.pos, n)
    places = (
        rng.integers(0, model.sequence_length, n)
        if buffer.anchor == "any"
        else np.full(n, model.sequence_length - 1)
    )
    ends = np.flatnonzero(buffer.dones[: buffer.pos, 0])
    rows = []
    for item, place in zip(items.tolist(), places.tolist(), strict=True):
        first = max([end + 1 for end in ends if end < item], default=0)
        last = min([end for end in ends if end >= item], default=buffer.pos - 1)
        rows.append(
            list(range(max(first, item - place), min(last, item - place + model.sequence_length - 1) + 1))
        )
    return buffer.sequences_at(items, places), rows


# --------------------------------------------------------------------------------------------- the latent model


def model_loss_by_steps(
    model: SLAC, rows: list[list[int]], noise: th.Tensor, prior_noise: th.Tensor | None
) -> float:
    """The model's loss, window by window and step by step, from what the buffer holds."""
    buffer, net = model.replay_buffer, model.latent
    total = []
    for k, steps in enumerate(rows):
        raw = [*buffer.observations[steps, 0], buffer.next_observations[steps[-1], 0]]
        seen = [(th.from_numpy(one) - net.observation_center) / net.observation_scale for one in raw]
        done = [th.from_numpy(buffer.actions[row, 0]) for row in steps]
        likelihood = divergence = 0.0
        before: dict[str, th.Tensor] = {}
        for t, observation in enumerate(seen):
            if t == 0:
                q = Normal(*net.first_belief(observation))
                p = Normal(th.zeros(3), th.ones(3))
            else:
                q = Normal(*net.belief(th.cat([observation, done[t - 1], before["z2"]])))
                p = Normal(*net.next_z1(th.cat([before["z2"], done[t - 1]])))
            z1 = q.mean + q.stddev * noise[t, k, :3]
            if t == 0:
                mean, std = net.first_z2(z1)
            else:
                mean, std = net.next_z2(th.cat([done[t - 1], z1, before["z2"]]))
            z2 = mean + std * noise[t, k, 3:]
            if prior_noise is not None:
                z1 = p.mean + p.stddev * prior_noise[t, k]
            now = th.cat([z1, z2])
            likelihood += float(Normal(*net.observation(now)).log_prob(observation).sum())
            divergence += float(kl_divergence(q, p).sum())
            row = steps[t - 1]
            ended = bool(buffer.dones[row, 0]) and not buffer.timeouts[row, 0]
            if t > 0 and not (model.variant == "lee" and ended):
                reward = Normal(*net.reward(th.cat([before["z"], done[t - 1], now])))
                given = (float(buffer.rewards[row, 0]) - net.reward_center) / net.reward_scale
                likelihood += float(reward.log_prob(given))
            before = {"z": now, "z2": z2}
        if model.variant == "han":
            total.append((divergence / 3 - likelihood / 4) / (model.sequence_length + 1))
        else:
            total.append(divergence - likelihood)
    return float(np.mean(total))


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("variant", ["elbo", "han", "lee"])
def test_the_model_loss_is_that_of_a_loop_over_steps(variant: str, separate: bool) -> None:
    model = build(variant=variant, rl_positions="all", nets={"separate_std": separate})
    model.learn(STEPS)
    batch, rows = drawn(model)
    assert {len(part) for part in rows} > {1, 4}, "short windows are among them"
    window = model._without_burn_in(batch)
    th.manual_seed(1)
    noise = th.randn(5, 12, 7)
    prior_noise = th.randn(5, 12, 3) if variant == "han" else None
    with th.no_grad():
        expected = model_loss_by_steps(model, rows, noise, prior_noise)

        def found(changed: SequenceBatch) -> float:
            th.manual_seed(1)
            return float(model.model_loss(changed)[0])

        assert found(window) == pytest.approx(expected, rel=1e-4)
        # A shift by one of rewards or of actions is another objective.
        for name in ("rewards", "previous_actions", "observations"):
            shifted = window._replace(**{name: getattr(window, name).roll(1, dims=0)})
            assert found(shifted) != pytest.approx(expected, rel=1e-3), name


# ---------------------------------------------------------------------------------------------- actor and critics


@pytest.mark.parametrize("positions", ["last", "all"])
@pytest.mark.parametrize(
    "nets",
    [
        {},
        {"critic_kind": "q_target", "critic_input": "z", "actor_history": "obs_act", "separate_std": True},
        {"pad": "repeat"},
    ],
    ids=["page", "lee", "repeat"],
)
def test_rl_losses_are_those_of_a_loop_over_steps(positions: str, nets: dict[str, Any]) -> None:
    model = build(rl_positions=positions, nets=nets, ent_coef=0.2, gamma=0.9)
    model.learn(STEPS)
    with th.no_grad():
        for parameter in model.critic_target.parameters():
            parameter.add_(0.1 * th.randn_like(parameter))
    batch, rows = drawn(model)
    window = model._without_burn_in(batch)
    _, inferred = model.model_loss(window)
    both = nets.get("critic_input") == "z"
    latents = (inferred.z if both else inferred.z2).detach()
    by_value = nets.get("critic_kind", "v") == "v"
    k_places = (1 if positions == "last" else 4) * (1 if by_value else 2)
    th.manual_seed(2)
    noise = th.randn(k_places, 12, 2)
    th.manual_seed(2)
    rl = model.rl_batch(batch, window, latents)
    log_probs = rl.log_probs
    value_loss, policy_loss = model.critic_loss(rl, th.tensor(0.2)), model.actor_loss(rl, th.tensor(0.2))
    actor_terms, critic_terms = [], []
    with th.no_grad():
        for k, steps in enumerate(rows):
            places = [len(steps) - 1] if positions == "last" else list(range(len(steps)))
            for place, t in enumerate(places):
                row = steps[t]
                z, after = latents[t, k], latents[t + 1, k]
                action, log_pi = own_action(model, row, noise[place, k], after=False)
                rated = min(float(q) for q in model.critic(z, action))
                if by_value:
                    following = float(model.critic_target(after))
                else:
                    next_action, next_log = own_action(
                        model, row, noise[k_places // 2 + place, k], after=True
                    )
                    following = (
                        min(float(q) for q in model.critic_target(after, next_action)) - 0.2 * next_log
                    )
                ended = bool(model.replay_buffer.dones[row, 0]) and not model.replay_buffer.timeouts[row, 0]
                target = float(model.replay_buffer.rewards[row, 0]) + 0.9 * (not ended) * following
                done = th.from_numpy(model.replay_buffer.actions[row, 0])
                term = sum(0.5 * (float(q) - target) ** 2 for q in model.critic(z, done))
                if model.critic.value is not None:
                    term += 0.5 * (float(model.critic.value(z)) - (rated - 0.2 * log_pi)) ** 2
                critic_terms.append(term)
                actor_terms.append(0.2 * log_pi - rated)
                assert log_probs[place, k].item() == pytest.approx(log_pi, abs=1e-4)
    assert value_loss.item() == pytest.approx(np.mean(critic_terms), rel=1e-4)
    assert policy_loss.item() == pytest.approx(np.mean(actor_terms), rel=1e-4)


def own_action(model: SLAC, row: int, noise: th.Tensor, after: bool) -> tuple[th.Tensor, float]:
    """Return what the actor would do at an observation of the buffer (or at the next one), having lived through it."""
    buffer = model.replay_buffer
    begin = row
    while begin > 0 and not buffer.dones[begin - 1, 0]:
        begin -= 1
    seen = list(buffer.observations[begin : row + 1, 0])
    if after:
        seen.append(buffer.next_observations[row, 0])
    memory = model.policy.initial_state(1)
    starts = th.ones(1, dtype=th.bool)
    mean = log_std = th.zeros(0)
    for step, observation in enumerate(seen):
        model.policy.act(th.from_numpy(observation[None]), memory, starts, True)
        actor: Any = model.actor
        past, done = memory
        now = th.from_numpy(observation).view(1, 1, 3)
        if actor.repeats and step == 0:
            past = now.expand_as(past)
        stacked = th.cat([past, now], dim=1)
        mean, log_std = actor(actor.join(stacked, done))
        memory = model.policy.update_state(
            (stacked[:, 1:], done), th.from_numpy(buffer.actions[(begin + step) % 300])
        )
        starts = th.zeros(1, dtype=th.bool)
    raw = mean[0] + log_std[0].exp() * noise
    squeeze = th.log(1 - th.tanh(raw.double()).square())
    return th.tanh(raw), float((Normal(mean[0], log_std[0].exp()).log_prob(raw) - squeeze).sum())


def test_the_model_sees_the_world_in_its_own_units() -> None:
    model = build(learning_starts=60, train_freq=61)
    model.learn(61)
    assert model._model_updates == 5
    buffer = model.replay_buffer
    assert np.allclose(model.latent.observation_center.numpy(), buffer.observations[:61, 0].mean(0), atol=0.2)
    assert float(model.latent.reward_scale) == pytest.approx(buffer.rewards[:61].std(), rel=0.15)
    assert float(model.latent.reward_center) == pytest.approx(buffer.rewards[:61].mean(), abs=0.2)
    plain = build(standardize=False)
    plain.learn(STEPS)
    assert plain.latent.reward_scale.tolist() == [1.0]


def test_no_gradient_of_actor_or_critics_reaches_the_model() -> None:
    model = build()
    model.learn(STEPS)
    batch, _ = drawn(model)
    window = model._without_burn_in(batch)
    model_loss, inferred = model.model_loss(window)
    model.policy.zero_grad()
    model_loss.backward()
    # z² is drawn from the generative networks, so that every network of the model is trained by the bound.
    assert all(p.grad is not None and p.grad.any() for p in model.latent.parameters())
    for others in (model.actor, model.critic, model.critic_target):
        assert all(p.grad is None for p in others.parameters())
    rl = model.rl_batch(batch, window, inferred.z2.detach())
    value_loss, policy_loss = model.critic_loss(rl, th.tensor(0.1)), model.actor_loss(rl, th.tensor(0.1))
    for loss, mine, other in (
        (value_loss, model.critic, model.actor),
        (policy_loss, model.actor, model.critic),
    ):
        model.policy.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.any() for p in mine.parameters())
        for net in (other, model.latent, model.critic_target):
            assert all(p.grad is None for p in net.parameters())


@pytest.mark.parametrize("positions", ["last", "all"])
@pytest.mark.parametrize("kind", ["v", "q_target"])
def test_an_update_is_that_of_sac_written_out(kind: str, positions: str) -> None:
    """The model, then critics, then the actor against the new critics, with an optimizer that is not fused."""
    lr, gamma = 0.1, 0.9
    nets = {"critic_kind": kind, "optimizer_class": th.optim.SGD}
    model = build(rl_positions=positions, nets=nets, gamma=gamma, learning_rate=lr, ent_coef=0.2)
    model.learn(STEPS)
    batch, _ = drawn(model)
    model.replay_buffer.sample_sequences = lambda *_, **__: batch  # type: ignore[method-assign, assignment]
    latent, actor, critic, target = (
        copy.deepcopy(net) for net in (model.latent, model.actor, model.critic, model.critic_target)
    )
    state = th.get_rng_state()
    model.train(1, 12)
    th.set_rng_state(state)

    window = model._without_burn_in(batch)
    with th.no_grad():  # the draws of the model's step, with the weights it had
        observations, _ = latent.normalize(window.observations, window.rewards.unsqueeze(-1))
        latents = latent.infer(observations, window.actions).z2
    here = th.arange(4).unsqueeze(1).expand(-1, 12) if positions == "all" else (window.lengths - 1)[None]
    mask = window.mask if positions == "all" else th.ones(1, 12)
    columns = th.arange(12)
    places = here if kind == "v" else th.cat([here, here + 1])
    stacks = actor.stack(batch)[batch.burn_in + places, columns]
    mean, log_std = actor(stacks)
    raw = mean + log_std.exp() * th.randn_like(mean)
    actions = th.tanh(raw)
    log_pi = (Normal(mean, log_std.exp()).log_prob(raw) - th.log(1 - actions.square() + 1e-12)).sum(-1)
    k = len(here)
    now, after = latents[here, columns], latents[here + 1, columns]

    def mean_of(values: th.Tensor) -> th.Tensor:
        return (values * mask).sum() / mask.sum()

    with th.no_grad():
        if kind == "v":
            following = target(after).squeeze(-1)
        else:
            following = th.minimum(*target(after, actions[k:])) - 0.2 * log_pi[k:]
        y = window.rewards[here, columns] + gamma * (1 - window.terminals[here, columns]) * following
        v = th.minimum(*critic(now, actions[:k])) - 0.2 * log_pi[:k]
    loss = sum(mean_of(0.5 * (q - y).square()) for q in critic(now, window.actions[here, columns]))
    if critic.value is not None:
        loss = loss + mean_of(0.5 * (critic.value(now).squeeze(-1) - v).square())

    def descend(net: th.nn.Module, loss: Any) -> None:
        gradients = th.autograd.grad(loss, list(net.parameters()), retain_graph=True)
        with th.no_grad():
            for parameter, gradient in zip(net.parameters(), gradients, strict=True):
                parameter -= lr * gradient

    descend(critic, loss)
    descend(actor, mean_of(0.2 * log_pi[:k] - th.minimum(*critic(now, actions[:k]))))
    for found, wanted in ((model.critic, critic), (model.actor, actor)):
        for parameter, expected in zip(found.parameters(), wanted.parameters(), strict=True):
            assert th.allclose(parameter, expected, atol=2e-6)


def test_an_update_changes_the_model_by_its_own_loss_alone() -> None:
    def after_one(gamma: float) -> dict[str, th.Tensor]:
        model = build(gamma=gamma, learning_starts=80, train_freq=81)
        model.learn(81)
        assert model._n_updates == 1
        return {name: value.clone() for name, value in model.policy.state_dict().items()}

    one, other = after_one(0.5), after_one(0.99)
    assert all(th.equal(one[name], other[name]) for name in one if name.startswith("latent."))
    assert not all(th.equal(one[name], other[name]) for name in one if name.startswith("critic."))


@pytest.mark.parametrize("kind", ["stack", "lstm"])
@pytest.mark.parametrize(("history", "pad"), [("obs", "zero"), ("obs_act", "repeat")])
def test_acting_step_by_step_is_the_window(kind: str, history: str, pad: str) -> None:
    model = build(nets={"actor_kind": kind, "actor_history": history, "pad": pad}, learning_starts=1000)
    model.learn(40)
    buffer = model.replay_buffer
    ends = np.flatnonzero(buffer.dones[:40, 0])
    begin, end = next((a + 1, b) for a, b in pairwise(ends) if b - a > 8)
    state, found = None, []
    for row in range(begin, begin + 8):
        action, state = model.predict(
            buffer.observations[row], state, np.array([row == begin]), deterministic=True
        )
        assert state is not None
        # The executed action replaces the one that the actor has just chosen.
        done = np.concatenate([np.zeros((3, 2), np.float32), buffer.actions[begin : row + 1, 0]])
        state = (state[0], done[None, -3:]) if kind == "stack" else (*state[:2], done[-1:])
        found.append(action / 2.0)
    assert end >= begin + 7
    batch = buffer.sequences_at(np.array([begin + 7]), np.array([3]))
    mean, _ = model._heads(batch, th.arange(4).unsqueeze(1))
    assert np.allclose(th.tanh(mean[:, 0]).detach().numpy(), np.concatenate(found)[4:], atol=1e-5)


def test_the_latent_state_knows_what_is_hidden() -> None:
    """How a pendulum's position has just changed, by a linear fit: not to be had from the position itself."""
    nets = {"z1_dim": 4, "z2_dim": 12, "model_arch": [64], "model_learning_rate": 3e-3}
    settings = {
        "learning_starts": 2000,
        "buffer_size": 2000,
        "batch_size": 32,
        "sequence_length": 8,
        "divergence_warmup": 0,
    }
    model = build(environment=lambda: pendulum("positions"), nets=nets, **settings)
    model.learn(800)
    model._fit_normalizer()
    for _ in range(400):
        model._train_model(model._without_burn_in(model._sample(32)))
    window = model._without_burn_in(model._sample(600))
    with th.no_grad():
        _, inferred = model.model_loss(window)
    full = window.lengths == 8
    change = (window.observations[-1, full] - window.observations[-2, full]).numpy()

    def unexplained(inputs: th.Tensor) -> float:
        known = np.hstack([inputs.numpy(), np.ones((len(inputs), 1))])
        weights = np.linalg.lstsq(known[::2], change[::2], rcond=None)[0]
        return float(
            np.var(change[1::2] - known[1::2] @ weights, axis=0).sum() / np.var(change, axis=0).sum()
        )

    assert unexplained(window.observations[-1, full]) > 0.85
    assert unexplained(inferred.z2[-1, full]) < 0.7


# ------------------------------------------------------------------------------------------------- as a citizen


def test_what_cannot_work_is_rejected() -> None:
    with pytest.raises(UsageError, match="elbo, han, lee"):
        build(variant="best")
    with pytest.raises(UsageError, match="stack, lstm"):
        build(nets={"actor_kind": "gru"})


def test_the_command(rlexp: Rlexp, tmp_path: Path) -> None:
    arguments = ("algo=slac", "env=pendulum_p", "total_timesteps=60", "logger=none", "evaluation.episodes=1")
    small = ("algo.learning_starts=50", "algo.pretrain_updates=2", "algo.model_arch=[8]", "env.max_steps=20")
    done = rlexp(*arguments, *small, "experiment=slac_han")
    assert done.returncode == 0, done.stderr
    rejected = rlexp(*arguments, "algo.variant=hans")
    assert rejected.returncode == 2 and "han" in rejected.stderr
