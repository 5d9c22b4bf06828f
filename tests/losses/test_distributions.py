"""Densities and divergences against torch's own distributions; both forms agree."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from torch.distributions import Categorical, Normal, kl_divergence

from rlexp.losses.distributions import (
    categorical_kl,
    gaussian_kl,
    gaussian_kl_log_std,
    gaussian_log_density,
    gaussian_log_prob,
    gaussian_log_prob_log_std,
)


@pytest.fixture
def gaussians() -> tuple[th.Tensor, ...]:
    """Mean and log σ of two Gaussians, and values, ``(5, 3)`` each."""
    generator = th.Generator().manual_seed(0)
    return tuple(th.randn(5, 5, 3, generator=generator, dtype=th.float64).unbind())


def test_log_probabilities(gaussians: tuple[th.Tensor, ...]) -> None:
    mean, log_std, _, _, values = gaussians
    expected = Normal(mean, log_std.exp()).log_prob(values)
    th.testing.assert_close(gaussian_log_prob(values, mean, log_std.exp()), expected.sum(-1))
    th.testing.assert_close(gaussian_log_prob_log_std(values, mean, log_std), expected.sum(-1))
    th.testing.assert_close(gaussian_log_density((values - mean) / log_std.exp(), log_std), expected)


def test_gaussian_divergences(gaussians: tuple[th.Tensor, ...]) -> None:
    mean, log_std, other_mean, other_log_std, _ = gaussians
    std, other_std = log_std.exp(), other_log_std.exp()
    expected = kl_divergence(Normal(mean, std), Normal(other_mean, other_std)).sum(-1)
    th.testing.assert_close(gaussian_kl(mean, std, other_mean, other_std), expected)
    th.testing.assert_close(gaussian_kl_log_std(mean, log_std, other_mean, other_log_std), expected)
    assert gaussian_kl(mean, std, mean, std).abs().max() < 1e-12, "equal ones do not diverge"


def test_categorical_divergence() -> None:
    logits, other = th.randn(2, 6, 4, generator=th.Generator().manual_seed(1)).unbind()
    expected = kl_divergence(Categorical(logits=logits), Categorical(logits=other))
    th.testing.assert_close(categorical_kl(logits.softmax(-1), other.softmax(-1)), expected)
    impossible = categorical_kl(th.tensor([[0.0, 1.0]]), th.tensor([[0.5, 0.5]]))
    assert impossible.item() == pytest.approx(np.log(2))
