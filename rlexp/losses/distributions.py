"""Log-densities and divergences of diagonal Gaussian and categorical distributions.

Some callers have σ, others log σ. Each form has a function of its own, since a conversion would change the last digits.
"""

from __future__ import annotations

import math

import torch as th

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def gaussian_log_density(noise: th.Tensor, log_std: th.Tensor) -> th.Tensor:
    """Return ``log N(μ + σ ε; μ, σ²)``, one term per dimension, ``(..., dim)``.

    :param noise: ε, the standardised values, ``(..., dim)``
    :param log_std: ``log σ``, ``(..., dim)``
    """
    return -0.5 * noise.square() - log_std - _HALF_LOG_TWO_PI


def gaussian_log_prob(values: th.Tensor, mean: th.Tensor, std: th.Tensor) -> th.Tensor:
    """Return ``log N(x; μ, diag σ²)``, ``(...)``.

    :param values: x, ``(..., dim)``
    :param mean: μ, ``(..., dim)``
    :param std: σ, ``(..., dim)``
    """
    return gaussian_log_density((values - mean) / std, std.log()).sum(dim=-1)


def gaussian_log_prob_log_std(values: th.Tensor, mean: th.Tensor, log_std: th.Tensor) -> th.Tensor:
    """Return ``log N(x; μ, diag σ²)``, ``(...)``.

    :param values: x, ``(..., dim)``
    :param mean: μ, ``(..., dim)``
    :param log_std: ``log σ``, ``(..., dim)``
    """
    return gaussian_log_density((values - mean) * th.exp(-log_std), log_std).sum(dim=-1)


def gaussian_kl(mean: th.Tensor, std: th.Tensor, other_mean: th.Tensor, other_std: th.Tensor) -> th.Tensor:
    """Return ``KL(N(μ, diag σ²) ‖ N(μ', diag σ'²))``, ``(...)``.

    :param mean: μ, ``(..., dim)``
    :param std: σ, ``(..., dim)``
    :param other_mean: μ', ``(..., dim)``
    :param other_std: σ', ``(..., dim)``
    """
    ratio = (std / other_std).square()
    return (0.5 * (ratio + ((mean - other_mean) / other_std).square() - 1 - ratio.log())).sum(dim=-1)


def gaussian_kl_log_std(
    mean: th.Tensor, log_std: th.Tensor, other_mean: th.Tensor, other_log_std: th.Tensor
) -> th.Tensor:
    """Return ``KL(N(μ, diag σ²) ‖ N(μ', diag σ'²))``, ``(...)``.

    :param mean: μ, ``(..., dim)``
    :param log_std: ``log σ``, ``(..., dim)``
    :param other_mean: μ', ``(..., dim)``
    :param other_log_std: ``log σ'``, ``(..., dim)``
    """
    second_moment = th.exp(2 * log_std) + (other_mean - mean).square()
    terms = other_log_std - log_std + 0.5 * second_moment * th.exp(-2 * other_log_std) - 0.5
    return terms.sum(dim=-1)


def categorical_kl(probabilities: th.Tensor, other: th.Tensor) -> th.Tensor:
    """Return ``KL(π ‖ π')``, ``(N,)``; entries of π may be 0.

    :param probabilities: π, ``(N, A)``
    :param other: π', ``(N, A)``
    """
    terms: th.Tensor = th.special.xlogy(probabilities, probabilities) - th.special.xlogy(probabilities, other)
    return terms.sum(dim=-1)
