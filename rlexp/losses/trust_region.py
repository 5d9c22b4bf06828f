"""Efficient trust region of ACER: a projection in the space of a distribution's statistics.

Wang et al. 2017; the closed form is also on DI-engine's documentation page of ACER.

Everything is per sample. The projected gradient must be that of one sample: divided by the batch size it would be so
short that the constraint never becomes active.
"""

from __future__ import annotations

import torch as th


def project(gradient: th.Tensor, kl_gradient: th.Tensor, delta: float) -> tuple[th.Tensor, th.Tensor]:
    """Bring a gradient ``g`` into the trust region: minimise ``½|g - z|²`` subject to ``kᵀz ≤ δ``.

    The solution is ``z = g - max(0, (kᵀg - δ) / |k|²) k``.

    :param gradient: ``g``, ascent direction with respect to the statistics, un-averaged, ``(N, S)``
    :param kl_gradient: ``k = ∇_φ KL(f(·|φ_average) ‖ f(·|φ))``, ``(N, S)``
    :param delta: δ, larger than 0
    :return: ``z`` of shape ``(N, S)`` and, as bool of shape ``(N,)``, where the constraint is active
    """
    excess = (kl_gradient * gradient).sum(dim=-1) - delta
    active = excess > 0
    # δ > 0, so that k is not 0 where the constraint is active; elsewhere the quotient is 0.
    squared = kl_gradient.square().sum(dim=-1)
    scale = excess.clamp(min=0) / squared.clamp(min=th.finfo(squared.dtype).tiny)
    return gradient - scale.unsqueeze(-1) * kl_gradient, active


def categorical_kl_gradient(probabilities: th.Tensor, average: th.Tensor) -> th.Tensor:
    """Return ``k = -π_average / π`` for a categorical distribution whose statistics are its probabilities.

    OpenAI Baselines uses the same statistics. (Log-probabilities or logits as statistics give another projection.)

    :param probabilities: ``π``, ``(N, A)``
    :param average: probabilities of the average policy, ``(N, A)``
    """
    return -average / probabilities


def logits_kl_gradient(probabilities: th.Tensor, average: th.Tensor) -> th.Tensor:
    """Return ``k = π - π_average`` for a categorical distribution whose statistics are its logits.

    :param probabilities: ``π``, ``(N, A)``
    :param average: probabilities of the average policy, ``(N, A)``
    """
    return probabilities - average


def to_logits(gradient: th.Tensor, probabilities: th.Tensor) -> th.Tensor:
    """Turn a gradient with respect to probabilities into one with respect to logits: ``π ∘ (g - πᵀg)``.

    :param gradient: ``(N, A)``
    :param probabilities: ``π``, the softmax of the logits, ``(N, A)``
    """
    weighted = probabilities * gradient
    return weighted - probabilities * weighted.sum(dim=-1, keepdim=True)


def gaussian_kl_gradient(
    mean: th.Tensor, log_std: th.Tensor, average_mean: th.Tensor, average_log_std: th.Tensor, learn_std: bool
) -> th.Tensor:
    """Return ``k`` for a diagonal Gaussian with the statistics (mean, log σ), or the mean alone.

    ``∂/∂mean = (mean - mean_a) / σ²`` and ``∂/∂log σ = 1 - (σ_a² + (mean - mean_a)²) / σ²``.

    :param mean: of the policy, ``(N, d)``
    :param log_std: of the policy, ``(N, d)``
    :param average_mean: of the average policy, ``(N, d)``
    :param average_log_std: of the average policy, ``(N, d)``
    :param learn_std: whether log σ is one of the statistics
    :return: ``(N, 2d)``, the mean's part first, or ``(N, d)``
    """
    precision = th.exp(-2 * log_std)
    shift = mean - average_mean
    by_mean = shift * precision
    if not learn_std:
        return by_mean
    by_log_std = 1 - (th.exp(2 * average_log_std) + shift.square()) * precision
    return th.cat([by_mean, by_log_std], dim=-1)
