"""ACER's updates against a loop over samples, and what ties V to Q."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from torch.distributions import Categorical, Normal, kl_divergence

from rlexp.algos.acer.replay import TERMINATED, TRUNCATED, Segments
from rlexp.algos.acer.updates import Settings, acer_loss
from tests.algos.acer_environments import Reach, make


def settings(**kwargs: Any) -> Settings:
    usual: dict[str, Any] = {
        "gamma": 0.9,
        "ent_coef": 0.05,
        "vf_coef": 0.5,
        "importance_weight_clip": 1.5,
        "trust_region": True,
        "trust_region_delta": 0.3,
        "trust_region_statistics": "probabilities",
        "bias_correction": True,
        "retrace": True,
        "dueling": True,
        "dueling_samples": 5,
    }
    return Settings(**{**usual, **kwargs})


def some_segments(continuous: bool) -> Segments:
    """Three segments of four steps, with one ending and one time limit."""
    generator = th.Generator().manual_seed(5)
    draw = lambda *shape: th.randn(*shape, generator=generator)  # noqa: E731
    ends = th.zeros(4, 3, dtype=th.uint8)
    ends[1, 0], ends[2, 1], ends[3, 2] = TERMINATED, TRUNCATED, TERMINATED
    actions = draw(4, 3, 2) if continuous else th.randint(3, (4, 3), generator=generator)
    behaviour = th.cat([draw(4, 3, 2), 0.1 * draw(4, 3, 2)], -1) if continuous else draw(4, 3, 3)
    return Segments(
        draw(5, 3, 3 if continuous else 6),
        actions,
        draw(4, 3),
        ends,
        behaviour if continuous else (2 * behaviour).log_softmax(-1),
        draw(1, 3 if continuous else 6),
        th.tensor([[2], [1]]),
    )


def targets(
    segments: Segments, q: Any, v: Any, truncation_value: float, coefficients: Any, gamma: float
) -> Any:
    """Algorithm 2's recursion, one step and one segment at a time."""
    found = np.zeros((4, 3))
    for b in range(3):
        following = v[4, b]
        for t in reversed(range(4)):
            if segments.ends[t, b] == TERMINATED:
                following = 0.0
            elif segments.ends[t, b] == TRUNCATED:
                following = truncation_value
            found[t, b] = segments.rewards[t, b].item() + gamma * following
            following = coefficients[t, b] * (found[t, b] - q[t, b]) + v[t, b]
    return found


def projected(g: th.Tensor, k: th.Tensor, delta: float) -> th.Tensor:
    return g - max(0.0, ((k @ g - delta) / (k @ k)).item()) * k


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"trust_region": False},
        {"bias_correction": False},
        {"trust_region_statistics": "logits", "trust_region_delta": 0.02},
        {"importance_weight_clip": 1e9, "ent_coef": 0.0},
    ],
    ids=str,
)
def test_discrete_update_against_a_loop(arguments: dict[str, Any]) -> None:
    model, chosen, segments = make(), settings(**arguments), some_segments(continuous=False)
    policy = model.policy
    with th.no_grad():  # away from where actor and average agree
        shake = th.Generator().manual_seed(11)
        for tensor in (*policy.average.parameters(), *policy.trained):
            tensor += 0.5 * th.randn(tensor.shape, generator=shake)
    loss, info = acer_loss(policy, segments, chosen)
    found = th.autograd.grad(loss, policy.trained)

    def at(states: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        return policy.actor(states), policy.value_net(policy.critic_latent(states))

    logits, q = at(segments.observations.flatten(0, 1))
    pi = logits.softmax(-1).view(5, 3, 3)
    logits, q = logits.view(5, 3, 3), q.view(5, 3, 3)
    v = (pi * q).sum(-1).detach()
    truncation_logits, truncation_q = at(segments.truncation_observations)
    truncation_value = (truncation_logits.softmax(-1) * truncation_q).sum().item()
    mu = segments.behaviour.exp()
    taken = q[:4].gather(-1, segments.actions.unsqueeze(-1)).squeeze(-1)
    rho = (pi[:4] / mu).detach()
    of_taken = rho.gather(-1, segments.actions.unsqueeze(-1)).squeeze(-1)
    returns = targets(
        segments, taken.detach().numpy(), v.numpy(), truncation_value, of_taken.clamp(max=1).numpy(), 0.9
    )
    total, active = th.zeros(()), 0
    for t in range(4):
        for b in range(3):
            statistics = (logits if chosen.trust_region_statistics == "logits" else pi)[t, b]
            phi = statistics.detach().requires_grad_()
            probabilities = phi.softmax(-1) if chosen.trust_region_statistics == "logits" else phi
            action = segments.actions[t, b]
            weight = of_taken[t, b].clamp(max=chosen.importance_weight_clip)
            objective = weight * (returns[t, b] - v[t, b]) * probabilities[action].log()
            if chosen.bias_correction:
                correction = (1 - chosen.importance_weight_clip / rho[t, b]).clamp(min=0) * pi[t, b].detach()
                objective = (
                    objective + (correction * (q[t, b].detach() - v[t, b]) * probabilities.log()).sum()
                )
            objective = objective - chosen.ent_coef * (probabilities * probabilities.log()).sum()
            (g,) = th.autograd.grad(objective, phi, retain_graph=True)
            if chosen.trust_region:
                average = policy.average_actor(segments.observations[t, b : b + 1]).squeeze(0)
                # KL as a function of unconstrained probabilities: Categorical would normalise them.
                divergence = -(average.softmax(-1) * probabilities.log()).sum()
                (k,) = th.autograd.grad(divergence, phi)
                active += int(k @ g > chosen.trust_region_delta)
                g = projected(g, k, chosen.trust_region_delta)
            error = returns[t, b] - taken[t, b]
            total = total - (g * statistics).sum() / 12 + 0.5 * 0.5 * error**2 / 12
    expected = th.autograd.grad(total, policy.trained)
    for one, other in zip(found, expected, strict=True):
        th.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
    if chosen.trust_region:
        assert info["constraint_active"].item() == pytest.approx(active / 12)
        assert active > 0
        average = policy.average_actor(segments.observations[:4].flatten(0, 1))
        divergence = kl_divergence(Categorical(logits=average), Categorical(logits=logits[:4].flatten(0, 1)))
        assert info["kl_to_average"].item() == pytest.approx(divergence.mean().item(), rel=1e-4)
    assert info["importance_weight"].item() == pytest.approx(of_taken.mean().item(), rel=1e-5)
    assert info["truncated"].item() == pytest.approx(
        (of_taken > chosen.importance_weight_clip).double().mean().item()
    )


@pytest.mark.parametrize(
    "arguments",
    [{}, {"trust_region": False}, {"bias_correction": False}, {"dueling": False}, {"retrace": False}],
    ids=str,
)
@pytest.mark.parametrize("learn_std", [False, True])
def test_continuous_update_against_a_loop(learn_std: bool, arguments: dict[str, Any]) -> None:
    chosen = settings(**{"trust_region_delta": 0.02, **arguments})
    segments = some_segments(continuous=True)
    policy = make(Reach, policy_kwargs={"learn_std": learn_std, "log_std_init": -0.2}).policy
    with th.no_grad():
        shake = th.Generator().manual_seed(11)
        for tensor in (*policy.average.parameters(), *policy.trained):
            tensor += 0.3 * th.randn(tensor.shape, generator=shake)
    th.manual_seed(7)
    loss, info = acer_loss(policy, segments, chosen)
    found = th.autograd.grad(loss, policy.trained)
    th.manual_seed(7)  # the same draws: first the fresh actions, then those of the dueling network
    states = segments.observations.flatten(0, 1)
    means = policy.actor(states).view(5, 3, 2)
    sampled_actions = policy.sample(means[:4].detach().flatten(0, 1)).view(4, 3, 2).detach()
    draws = policy.sample(means[:4].detach().flatten(0, 1), (5,)).view(5, 4, 3, 2).detach()
    v = policy.value_net(policy.critic_latent(states)).view(5, 3)
    truncation_value = policy.value_net(policy.critic_latent(segments.truncation_observations)).item()

    def advantage(t: int, b: int, action: th.Tensor) -> th.Tensor:
        latent = policy.critic_latent(segments.observations[t, b : b + 1])
        return policy.advantage_net(latent, action.view(1, 1, 2)).squeeze()

    def q_tilde(t: int, b: int, action: th.Tensor) -> th.Tensor:
        if not chosen.dueling:
            return advantage(t, b, action)
        mean = th.stack([advantage(t, b, draws[i, t, b]) for i in range(5)]).mean()
        return v[t, b] + advantage(t, b, action) - mean

    grid = [(t, b) for t in range(4) for b in range(3)]
    taken = th.stack([q_tilde(t, b, segments.actions[t, b]) for t, b in grid]).view(4, 3)
    std = policy.log_std.detach().exp()

    def ratio(t: int, b: int, action: th.Tensor) -> float:
        mean, log_std = segments.behaviour[t, b].chunk(2)
        now = Normal(means[t, b].detach(), std).log_prob(action).sum()
        return float((now - Normal(mean, log_std.exp()).log_prob(action).sum()).exp())

    rho = np.array([ratio(t, b, segments.actions[t, b]) for t, b in grid]).reshape(4, 3)
    values, q = v.detach().numpy(), taken.detach().numpy()
    if chosen.retrace:
        returns = targets(segments, q, values, truncation_value, np.minimum(1, np.sqrt(rho)), 0.9)
        corrected = targets(segments, q, values, truncation_value, np.ones((4, 3)), 0.9)
    else:
        returns = corrected = targets(segments, values[:4], values, truncation_value, np.ones((4, 3)), 0.9)
    total, active = th.zeros(()), 0
    for t, b in grid:
        mean = means[t, b].detach().requires_grad_()
        log_std = policy.log_std.detach().clone().requires_grad_()
        now = Normal(mean, log_std.exp())
        weight = min(rho[t, b], chosen.importance_weight_clip)
        objective = weight * (corrected[t, b] - values[t, b]) * now.log_prob(segments.actions[t, b]).sum()
        if chosen.bias_correction:
            weight = max(0.0, 1 - chosen.importance_weight_clip / ratio(t, b, sampled_actions[t, b]))
            advantages = (q_tilde(t, b, sampled_actions[t, b]) - v[t, b]).item()
            objective = objective + weight * advantages * now.log_prob(sampled_actions[t, b]).sum()
        objective = objective + chosen.ent_coef * now.entropy().sum()
        inputs = [mean, log_std] if learn_std else [mean]
        g = th.cat(th.autograd.grad(objective, inputs, retain_graph=True))
        if chosen.trust_region:
            average = policy.average_actor(segments.observations[t, b : b + 1]).squeeze(0)
            before = Normal(average, policy.average_log_std.exp())
            k = th.cat(th.autograd.grad(kl_divergence(before, now).sum(), inputs))
            active += int(k @ g > chosen.trust_region_delta)
            g = projected(g, k, chosen.trust_region_delta)
        statistics = th.cat([means[t, b], policy.log_std]) if learn_std else means[t, b]
        error = returns[t, b] - taken[t, b].detach()
        critic = -error * taken[t, b] - min(1.0, rho[t, b]) * error * v[t, b]
        total = total + (-(g * statistics).sum() + 0.5 * critic) / 12
    expected = th.autograd.grad(total, policy.trained)
    for one, other in zip(found, expected, strict=True):
        th.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)
    if chosen.trust_region:
        assert info["constraint_active"].item() == pytest.approx(active / 12) and active > 0


def test_v_and_q_are_consistent() -> None:
    """The mean of Q̃ over the policy's own actions is V, within three standard errors."""
    model = make(Reach, policy_kwargs={"net_arch": [16]})
    policy, observation = model.policy, th.tensor([[0.3, -0.2, 0.9]])
    with th.no_grad():
        policy.advantage_net.head[1].weight *= 5
        many = observation.expand(40_000, 3)
        q = policy.action_values(many, policy.sample(policy.actor(many)))
        value = policy.predict_values(observation).item()
    assert q.std() > 0.1
    assert abs(q.mean().item() - value) < 3 * q.std().item() / 200
