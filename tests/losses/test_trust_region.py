"""The projection against a numerical solver, its ingredients against automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from scipy.optimize import minimize
from torch.distributions import Categorical, Normal, kl_divergence

from rlexp.losses import trust_region
from rlexp.losses.distributions import categorical_kl, gaussian_kl_log_std

DOUBLE = th.float64


def random(*shape: int, seed: int) -> th.Tensor:
    return th.randn(*shape, generator=th.Generator().manual_seed(seed), dtype=DOUBLE)


@pytest.mark.parametrize("delta", [0.1, 1.0])
@pytest.mark.parametrize("size", [2, 5])
def test_solves_the_constrained_problem(size: int, delta: float) -> None:
    gradient, kl_gradient = 2 * random(12, size, seed=0), random(12, size, seed=1)
    found, active = trust_region.project(gradient, kl_gradient, delta)
    assert active.any() and not active.all(), "both cases must be tried"
    for g, k, z, is_active in zip(gradient.numpy(), kl_gradient.numpy(), found.numpy(), active, strict=True):
        solution = minimize(
            lambda x, g=g: 0.5 * np.sum((g - x) ** 2),
            np.zeros(size),
            jac=lambda x, g=g: x - g,
            constraints={"type": "ineq", "fun": lambda x, k=k: delta - k @ x, "jac": lambda x, k=k: -k},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        assert solution.success
        np.testing.assert_allclose(z, solution.x, atol=1e-6)
        assert bool(is_active) == (k @ g > delta)


def test_by_hand() -> None:
    gradient, kl_gradient = th.tensor([[3.0, 1.0], [3.0, 1.0]]), th.tensor([[2.0, 0.0], [-2.0, 0.0]])
    found, active = trust_region.project(gradient, kl_gradient, 1.0)
    # k·g = 6 and |k|² = 4, so (6 - 1) / 4 of k goes; against k nothing does.
    assert found.tolist() == [[0.5, 1.0], [3.0, 1.0]] and active.tolist() == [True, False]


def test_no_direction_no_constraint() -> None:
    found, active = trust_region.project(th.ones(1, 3), th.zeros(1, 3), 0.1)
    assert found.tolist() == [[1, 1, 1]] and not active


def test_averaging_before_projecting_is_another_thing() -> None:
    # The mistake that makes a trust region do nothing: gradients divided by the size of the batch first.
    gradient, kl_gradient = 20 * random(512, 4, seed=2), random(512, 4, seed=3)
    active = trust_region.project(gradient, kl_gradient, 1.0)[1].double().mean()
    divided = trust_region.project(gradient / 5120, kl_gradient, 1.0)[1].double().mean()
    assert active > 0.4 and divided == 0


def test_categorical_divergence() -> None:
    logits, average_logits = random(6, 4, seed=4).requires_grad_(), random(6, 4, seed=5)
    probabilities, average = logits.softmax(-1), average_logits.softmax(-1)
    divergence = categorical_kl(average, probabilities)
    th.testing.assert_close(
        divergence, kl_divergence(Categorical(logits=average_logits), Categorical(logits=logits))
    )
    by_probabilities, by_logits = th.autograd.grad(divergence.sum(), [probabilities, logits])
    k = trust_region.categorical_kl_gradient(probabilities, average)
    th.testing.assert_close(k, by_probabilities)
    th.testing.assert_close(trust_region.logits_kl_gradient(probabilities, average), by_logits)
    th.testing.assert_close(trust_region.to_logits(k, probabilities), by_logits)


def test_gaussian_divergence() -> None:
    mean, log_std = random(6, 3, seed=6).requires_grad_(), random(6, 3, seed=7).requires_grad_()
    average_mean, average_log_std = random(6, 3, seed=8), random(6, 3, seed=9)
    divergence = gaussian_kl_log_std(average_mean, average_log_std, mean, log_std)
    expected = kl_divergence(Normal(average_mean, average_log_std.exp()), Normal(mean, log_std.exp()))
    th.testing.assert_close(divergence, expected.sum(-1))
    by_mean, by_log_std = th.autograd.grad(divergence.sum(), [mean, log_std])
    both = trust_region.gaussian_kl_gradient(mean, log_std, average_mean, average_log_std, learn_std=True)
    th.testing.assert_close(both, th.cat([by_mean, by_log_std], -1))
    alone = trust_region.gaussian_kl_gradient(mean, log_std, average_mean, average_log_std, learn_std=False)
    th.testing.assert_close(alone, by_mean)


@pytest.mark.parametrize("delta", [0.05, 0.5])
def test_a_projected_step_respects_the_linearised_divergence(delta: float) -> None:
    average, current = random(64, 5, seed=10).softmax(-1), random(64, 5, seed=11).softmax(-1)
    k = trust_region.categorical_kl_gradient(current, average)
    projected, active = trust_region.project(5 * random(64, 5, seed=12), k, delta)
    growth = (k * projected).sum(-1)
    assert (growth <= delta + 1e-9).all()
    th.testing.assert_close(growth[active], th.full_like(growth[active], delta))
