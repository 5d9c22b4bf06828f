"""Truncated importance weights with bias correction, and the critics' losses."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch as th
from scipy.integrate import quad
from scipy.stats import norm
from torch.distributions import Categorical, Normal

from rlexp.losses import acer

DOUBLE = th.float64


def random(*shape: int, seed: int) -> th.Tensor:
    return th.randn(*shape, generator=th.Generator().manual_seed(seed), dtype=DOUBLE)


def test_weights_by_hand() -> None:
    ratios = th.tensor([0.0, 0.5, 2.0, 8.0])
    assert acer.truncated_weights(ratios, 2.0).tolist() == [0.0, 0.5, 2.0, 2.0]
    assert acer.correction_weights(ratios, 2.0).tolist() == [0.0, 0.0, 0.0, 0.75]
    assert acer.correction_weights(ratios, math.inf).tolist() == [0.0] * 4


def discrete_case(n: int = 40, n_actions: int = 4) -> dict[str, th.Tensor]:
    return {
        "probabilities": random(n, n_actions, seed=0).softmax(-1),
        "behaviour": (2 * random(n, n_actions, seed=1)).softmax(-1),
        "actions": th.randint(n_actions, (n,), generator=th.Generator().manual_seed(2)),
        "returns": random(n, seed=3),
        "action_values": random(n, n_actions, seed=4),
        "state_values": random(n, seed=5),
    }


@pytest.mark.parametrize("bias_correction", [True, False])
@pytest.mark.parametrize("cap", [0.5, 3.0, math.inf])
def test_categorical_gradient_against_a_loop(cap: float, bias_correction: bool) -> None:
    case = discrete_case()
    found = acer.categorical_policy_gradient(**case, cap=cap, bias_correction=bias_correction, ent_coef=0.1)
    for n in range(len(found)):
        pi = case["probabilities"][n].clone().requires_grad_()
        mu, action = case["behaviour"][n], int(case["actions"][n])
        value = case["state_values"][n]
        ratio = (pi / mu).detach()
        objective = ratio[action].clamp(max=cap) * (case["returns"][n] - value) * pi[action].log()
        if bias_correction:
            for other in range(len(pi)):
                weight = max(0.0, 1 - cap / ratio[other].item())
                advantage = case["action_values"][n, other] - value
                objective = objective + weight * pi[other].item() * advantage * pi[other].log()
        objective = objective - 0.1 * (pi * pi.log()).sum()
        (expected,) = th.autograd.grad(objective, pi)
        th.testing.assert_close(found[n], expected)


def test_categorical_gradient_by_hand() -> None:
    found = acer.categorical_policy_gradient(
        th.tensor([[0.8, 0.2]]),
        th.tensor([[0.1, 0.9]]),
        th.tensor([0]),
        th.tensor([5.0]),
        th.tensor([[4.0, -1.0]]),
        th.tensor([3.0]),
        cap=2.0,
    )
    # ρ = (8, 2/9): 2 · (5 - 3) / 0.8 for what was done, and (1 - 2/8)(4 - 3) for what truncation took away.
    th.testing.assert_close(found, th.tensor([[5.0 + 0.75, 0.0]]))


def test_on_policy_without_cap_is_the_advantage_times_the_score() -> None:
    case = discrete_case()
    logits = random(40, 4, seed=9).requires_grad_()
    case["probabilities"] = case["behaviour"] = logits.softmax(-1)
    gradient = acer.categorical_policy_gradient(**case, cap=math.inf)
    (found,) = th.autograd.grad((gradient * case["probabilities"]).sum(), logits)
    advantages = case["returns"] - case["state_values"]
    log_prob = Categorical(logits=logits).log_prob(case["actions"])
    (expected,) = th.autograd.grad((advantages * log_prob).sum(), logits)
    th.testing.assert_close(found, expected)


@pytest.mark.parametrize("cap", [0.3, 1.0, 10.0])
def test_truncation_with_correction_is_unbiased(cap: float) -> None:
    """Expected over the behaviour policy, the gradient is that of ``Σ π Q``, whatever the cap."""
    pi, mu, q = random(1, 5, seed=0).softmax(-1), random(1, 5, seed=1).softmax(-1), random(1, 5, seed=2)
    value = (pi * q).sum(-1)

    def expected_gradient(bias_correction: bool) -> th.Tensor:
        total = th.zeros_like(pi)
        for action in range(5):
            total += mu[0, action] * acer.categorical_policy_gradient(
                pi,
                mu,
                th.tensor([action]),
                q[:, action],
                q,
                value,
                cap=cap,
                bias_correction=bias_correction,
            )
        return total

    th.testing.assert_close(expected_gradient(True), q - value)
    if cap < 1:
        assert not th.allclose(expected_gradient(False), q - value)


def gaussian_case(n: int = 30, d: int = 2) -> dict[str, th.Tensor]:
    return {
        "mean": random(n, d, seed=0),
        "log_std": 0.3 * random(n, d, seed=1),
        "actions": random(n, d, seed=2),
        "ratios": random(n, seed=3).exp(),
        "advantages": random(n, seed=4),
        "sampled_actions": random(n, d, seed=5),
        "sampled_ratios": (2 * random(n, seed=6)).exp(),
        "sampled_advantages": random(n, seed=7),
    }


@pytest.mark.parametrize("bias_correction", [True, False])
@pytest.mark.parametrize("learn_std", [True, False])
def test_gaussian_gradient_against_automatic_differentiation(learn_std: bool, bias_correction: bool) -> None:
    case = gaussian_case()
    found = acer.gaussian_policy_gradient(
        **case, learn_std=learn_std, cap=1.5, bias_correction=bias_correction, ent_coef=0.1
    )
    mean, log_std = case["mean"].clone().requires_grad_(), case["log_std"].clone().requires_grad_()
    policy = Normal(mean, log_std.exp())
    objective = case["ratios"].clamp(max=1.5) * case["advantages"] * policy.log_prob(case["actions"]).sum(-1)
    if bias_correction:
        weight = (1 - 1.5 / case["sampled_ratios"]).clamp(min=0) * case["sampled_advantages"]
        objective = objective + weight * policy.log_prob(case["sampled_actions"]).sum(-1)
    objective = objective + 0.1 * policy.entropy().sum(-1)
    by_mean, by_log_std = th.autograd.grad(objective.sum(), [mean, log_std])
    th.testing.assert_close(found, th.cat([by_mean, by_log_std], -1) if learn_std else by_mean)


@pytest.mark.parametrize("cap", [0.3, 1.0, 5.0])
def test_gaussian_truncation_with_correction_is_unbiased(cap: float) -> None:
    """∫ μ min(c, ρ) A s + ∫ π [1 - c/ρ]₊ A s = ∫ π A s, by quadrature, ``s`` the score of the mean."""
    pi, mu = norm(0.3, 0.5), norm(-0.4, 0.8)

    def of(actions: float, which: str) -> float:
        point = th.tensor([[actions]], dtype=DOUBLE)
        ratio = th.tensor([pi.pdf(actions) / mu.pdf(actions)], dtype=DOUBLE)
        advantage = th.sin(3 * point).flatten()
        nothing = th.zeros(1, dtype=DOUBLE)
        gradient = acer.gaussian_policy_gradient(
            th.tensor([[0.3]], dtype=DOUBLE),
            th.tensor([[math.log(0.5)]], dtype=DOUBLE),
            point,
            ratio,
            advantage if which == "taken" else nothing,
            point,
            ratio,
            advantage if which == "sampled" else nothing,
            learn_std=False,
            cap=cap,
        )
        return float(gradient) * float((mu if which == "taken" else pi).pdf(actions))

    found = sum(quad(of, -4, 4, args=(which,), limit=200)[0] for which in ("taken", "sampled"))
    score = quad(lambda a: pi.pdf(a) * np.sin(3 * a) * (a - 0.3) / 0.25, -4, 4)[0]
    assert found == pytest.approx(score, abs=1e-5)


def test_stochastic_dueling_by_hand() -> None:
    found = acer.stochastic_dueling(
        th.tensor([1.0, 2.0]), th.tensor([[5.0, 7.0]]), th.tensor([[1.0, 0.0], [3.0, 4.0]])
    )
    assert found.tolist() == [[1 + 5 - 2, 2 + 7 - 2]]


def test_stochastic_dueling_is_consistent_in_expectation() -> None:
    # Three actions, five samples: the average of Q̃ over the policy and over all draws of u is V.
    pi = th.tensor([0.2, 0.5, 0.3], dtype=DOUBLE)
    advantages = th.tensor([4.0, -1.0, 7.0], dtype=DOUBLE)
    total = 0.0
    for draw in np.ndindex(3, 3, 3, 3, 3):
        sampled = th.tensor(draw)
        q = acer.stochastic_dueling(th.tensor([2.0]), advantages.unsqueeze(-1), advantages[sampled, None])
        total += (pi[sampled].prod() * (pi @ q.squeeze(-1))).item()
    assert total == pytest.approx(2.0)


def test_critic_losses() -> None:
    q, v = random(9, seed=0).requires_grad_(), random(9, seed=1).requires_grad_()
    returns, ratios = random(9, seed=2), random(9, seed=3).exp()
    (by_q,) = th.autograd.grad(acer.q_loss(q, returns).sum(), q)
    th.testing.assert_close(by_q, -(returns - q).detach())
    by_v, by_q_too = th.autograd.grad(acer.v_loss(v, q, returns, ratios).sum(), [v, q], allow_unused=True)
    th.testing.assert_close(by_v, -(ratios.clamp(max=1) * (returns - q)).detach())
    assert by_q_too is None
