"""Soft actor-critic's equations against torch's own distributions and numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch as th
from torch.distributions import Normal, TanhTransform, TransformedDistribution

from rlexp.losses.sac import (
    actor_loss,
    critic_loss,
    ent_coef_loss,
    masked_mean,
    soft_targets,
    soft_values,
    squashed_gaussian,
)

MASK = th.tensor([1.0, 0.0, 1.0])


def test_squashed_gaussian_is_a_density() -> None:
    th.manual_seed(0)
    mean, log_std, noise = th.randn(7, 3, dtype=th.float64).unbind(1)
    mean, log_std, noise = (part.reshape(7, 1).repeat(1, 2) for part in (mean, log_std / 3, noise))
    actions, log_probs = squashed_gaussian(mean, log_std, noise)
    expected = TransformedDistribution(Normal(mean, log_std.exp()), TanhTransform())
    assert th.allclose(log_probs, expected.log_prob(actions).sum(-1), atol=1e-6)
    far = squashed_gaussian(th.tensor([30.0]), th.tensor([0.0]), th.tensor([0.0]))
    assert float(far[0]) == 1.0 and float(far[1]) == pytest.approx(60 - 2 * math.log(2) - 0.9189385, rel=1e-5)


def test_targets_by_hand() -> None:
    values = soft_values((th.tensor([3.0, 5.0]), th.tensor([4.0, 1.0])), th.tensor([1.0, -2.0]), 0.5)
    assert values.tolist() == [2.5, 2.0]
    assert soft_targets(th.tensor([1.0, 1.0]), th.tensor([0.0, 1.0]), 0.5, values).tolist() == [2.25, 1.0]


def test_losses_by_hand() -> None:
    one, two = th.tensor([1.0, 99.0, 3.0]), th.tensor([2.0, -99.0, 0.0])
    targets = th.tensor([2.0, 7.0, 1.0])
    assert float(critic_loss((one, two), targets, MASK)) == pytest.approx((0.5 + 2.0 + 0.0 + 0.5) / 2)
    log_probs = th.tensor([1.0, 50.0, -1.0])
    assert float(actor_loss((one, two), log_probs, 0.1, MASK)) == pytest.approx(
        ((0.1 - 1.0) + (-0.1 - 0.0)) / 2
    )
    log_coef = th.tensor([math.log(0.1)], requires_grad=True)
    loss = ent_coef_loss(log_coef, log_probs, -2.0, MASK)
    assert loss.item() == pytest.approx(-math.log(0.1) * (0.0 - 2.0))
    loss.backward()
    assert log_coef.grad is not None and log_coef.grad.item() == pytest.approx(2.0)


def test_masks() -> None:
    values = th.tensor([1.0, float("1e30"), 3.0])
    assert float(masked_mean(values, MASK)) == 2.0
    assert float(masked_mean(th.tensor([1.0, 2.0]), None)) == 1.5
