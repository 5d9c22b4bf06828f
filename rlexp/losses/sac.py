"""Soft actor-critic on masked sequences: squashed Gaussians, soft Bellman targets, and the losses over sequences.

Haarnoja et al. 2018, "Soft actor-critic algorithms and applications" (arXiv 1812.05905), numbers of equations from
there. Every loss is a mean over the unmasked steps, so that its scale does not depend on how many there are.
"""

from __future__ import annotations

import math

import torch as th
from torch.nn import functional as F

from rlexp.losses.distributions import gaussian_log_density


def squashed_gaussian(mean: th.Tensor, log_std: th.Tensor, noise: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
    """Sample ``a = tanh(u)``, ``u = μ + σ ε``, and its log-density (appendix C, eq. 26).

    ``log(1 - tanh² u)`` is computed as ``2 (log 2 - u - softplus(-2u))``, which is numerically stable.

    :param mean: μ, ``(..., action_dim)``
    :param log_std: ``log σ``, ``(..., action_dim)``
    :param noise: ε, standard normal, ``(..., action_dim)``
    :return: actions, ``(..., action_dim)``, and log-densities, ``(...)``
    """
    raw = mean + log_std.exp() * noise
    density = gaussian_log_density(noise, log_std)
    log_det = 2.0 * (math.log(2.0) - raw - F.softplus(-2.0 * raw))
    return th.tanh(raw), (density - log_det).sum(dim=-1)


def masked_mean(values: th.Tensor, mask: th.Tensor | None) -> th.Tensor:
    """Return the mean over the entries where the mask is 1.

    :param values: any shape
    :param mask: 0 or 1, of the same shape and not 0 everywhere; None: every entry counts
    """
    return values.mean() if mask is None else (values * mask).sum() / mask.sum()


def soft_targets(
    rewards: th.Tensor,
    terminals: th.Tensor,
    gamma: float,
    next_values: th.Tensor,
) -> th.Tensor:
    """Return ``r + γ (1 - terminal) V(s')`` (eq. 2).

    :param rewards: ``(...)``
    :param terminals: 1 at a true terminal, 0 at a time limit, ``(...)``
    :param gamma: γ
    :param next_values: soft values of the next states, see :func:`soft_values`, ``(...)``
    """
    return rewards + gamma * (1.0 - terminals) * next_values


def soft_values(
    action_values: tuple[th.Tensor, ...], log_probs: th.Tensor, ent_coef: th.Tensor | float
) -> th.Tensor:
    """Return ``V = min_k Q_k(s, a) - α log π(a|s)`` of a sampled action (eq. 3).

    :param action_values: of each critic, ``(...)``
    :param log_probs: ``log π(a|s)``, ``(...)``
    :param ent_coef: α
    """
    lowest = action_values[0]
    for other in action_values[1:]:
        lowest = th.minimum(lowest, other)
    return lowest - ent_coef * log_probs


def critic_loss(
    action_values: tuple[th.Tensor, ...], targets: th.Tensor, mask: th.Tensor | None = None
) -> th.Tensor:
    """Return ``Σ_k ½ (Q_k - y)²``, averaged (eq. 5).

    :param action_values: of each critic, ``(...)``
    :param targets: y, ``(...)``, without gradient
    :param mask: 1 for the entries that count, ``(...)``; None: all of them
    """
    errors = th.stack([0.5 * (value - targets).square() for value in action_values]).sum(dim=0)
    return masked_mean(errors, mask)


def actor_loss(
    action_values: tuple[th.Tensor, ...],
    log_probs: th.Tensor,
    ent_coef: th.Tensor | float,
    mask: th.Tensor | None = None,
) -> th.Tensor:
    """Return ``α log π(a|s) - min_k Q_k(s, a)``, averaged (eq. 9).

    :param action_values: of each critic at the actor's own actions, ``(...)``
    :param log_probs: ``log π(a|s)``, ``(...)``
    :param ent_coef: α, without gradient
    :param mask: 1 for the entries that count, ``(...)``; None: all of them
    """
    return -masked_mean(soft_values(action_values, log_probs, ent_coef), mask)


def ent_coef_loss(
    log_ent_coef: th.Tensor, log_probs: th.Tensor, target_entropy: float, mask: th.Tensor | None = None
) -> th.Tensor:
    """Return ``-log α (log π(a|s) + target entropy)``, averaged (eq. 18, with log α in place of α).

    :param log_ent_coef: ``log α``, ``(1,)``
    :param log_probs: ``log π(a|s)``, ``(...)``; detached here
    :param target_entropy: usually minus the number of action dimensions
    :param mask: 1 for the entries that count, ``(...)``; None: all of them
    """
    return -(log_ent_coef * (masked_mean(log_probs.detach(), mask) + target_entropy)).sum()
