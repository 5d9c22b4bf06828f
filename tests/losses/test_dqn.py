"""Targets and losses against numbers worked out by hand."""

from __future__ import annotations

import pytest
import torch as th
from torch.nn import functional as F

from rlexp.losses.dqn import td_targets, weighted_td_gradient, weighted_td_loss


def test_targets_by_hand() -> None:
    rewards, dones = th.tensor([[1.0], [2.0]]), th.tensor([[0.0], [1.0]])
    values = th.tensor([[3.0, 5.0], [7.0, 9.0]])
    assert td_targets(rewards, dones, 0.5, values).tolist() == [[3.5], [2.0]]
    chooser = th.tensor([[1.0, 0.0], [0.0, 1.0]])  # action 0 where the target network prefers action 1
    assert td_targets(rewards, dones, 0.5, values, chooser).tolist() == [[2.5], [2.0]]
    discounts = th.tensor([[0.9], [0.1]])
    assert td_targets(rewards, th.zeros(2, 1), discounts, values).tolist() == [
        pytest.approx([5.5]),
        pytest.approx([2.9]),
    ]


def test_loss_by_hand() -> None:
    errors = th.tensor([[0.5], [-3.0]])
    weights = th.tensor([[1.0], [0.5]])
    assert float(weighted_td_loss(errors, weights, 1.0)) == pytest.approx((0.125 + 0.5 * 2.5) / 2)
    assert float(weighted_td_loss(errors, weights, None)) == pytest.approx((0.125 + 0.5 * 4.5) / 2)


@pytest.mark.parametrize("clip", [0.3, 1.0, 4.0])
def test_the_gradient_is_the_clipped_error(clip: float) -> None:
    errors = th.linspace(-5, 5, 21).reshape(-1, 1).requires_grad_()
    weights = th.linspace(0.1, 1, 21).reshape(-1, 1)
    loss = weighted_td_loss(errors, weights, clip)
    loss.backward()
    assert errors.grad is not None
    assert th.allclose(errors.grad * 21, weights * errors.detach().clamp(-clip, clip), atol=1e-6)
    errors = errors.detach()
    unweighted = weighted_td_loss(errors, th.ones_like(errors), clip)
    assert float(unweighted) == pytest.approx(
        float(F.huber_loss(errors, th.zeros_like(errors), delta=clip)), rel=1e-5
    )


@pytest.mark.parametrize("clip", [None, 0.5])
def test_the_gradient_is_that_of_the_loss(clip: float | None) -> None:
    generator = th.Generator().manual_seed(0)
    values = th.randn(16, 1, generator=generator, requires_grad=True)
    targets, weights = th.randn(16, 1, generator=generator), th.rand(16, 1, generator=generator)
    weighted_td_loss(targets - values, weights, clip).backward()
    assert values.grad is not None
    assert th.allclose(weighted_td_gradient(targets - values.detach(), weights, clip), values.grad, atol=1e-7)
