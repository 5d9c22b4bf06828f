"""The latent model's objective: evidence lower bound, and the forms of it that are in circulation.

Lee et al. 2020, "Stochastic latent actor-critic" (arXiv 1907.00953), eq. 6 and appendix A. A window is ``o_1 .. o_{τ+1}``
with the actions ``a_1 .. a_τ`` and the rewards ``r_1 .. r_τ`` in between, ``T = τ``::

    log p(o, r | a) >= E_q [ Σ_t log p(o_t | z_t) + Σ_t log p(r_t | z_t, a_t, z_{t+1})
                             - KL(q(z¹_1 | o_1) || p(z¹_1)) - Σ_t KL(q(z¹_{t+1} | o_{t+1}, z²_t, a_t) || p(z¹_{t+1} | z²_t, a_t)) ]

``z²`` is drawn from the same network in inference and in generation, so that it costs no divergence.
"""  # noqa: E501  (the equation)

from __future__ import annotations

import math

import torch as th

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def gaussian_log_density(values: th.Tensor, mean: th.Tensor, std: th.Tensor) -> th.Tensor:
    """Return ``log N(x; μ, diag σ²)``, ``(...)``.

    :param values: x, ``(..., dim)``
    :param mean: μ, likewise
    :param std: σ, likewise
    """
    return (-0.5 * ((values - mean) / std).square() - std.log() - _HALF_LOG_TWO_PI).sum(dim=-1)


def gaussian_divergence(
    mean: th.Tensor, std: th.Tensor, other_mean: th.Tensor, other_std: th.Tensor
) -> th.Tensor:
    """Return ``KL(N(μ, diag σ²) || N(μ', diag σ'²))``, one term for each dimension, ``(..., dim)``.

    :param mean: μ, ``(..., dim)``; likewise the others
    """
    ratio = (std / other_std).square()
    return 0.5 * (ratio + ((mean - other_mean) / other_std).square() - 1 - ratio.log())


def elbo_loss(
    observation_log: th.Tensor,
    reward_log: th.Tensor,
    divergence: th.Tensor,
    seen: th.Tensor,
    done: th.Tensor,
    divergence_weight: float = 1.0,
) -> th.Tensor:
    """Return minus the evidence lower bound, summed along each window, averaged over windows.

    :param observation_log: ``log p(o_t | z_t)``, ``(T + 1, n)``
    :param reward_log: ``log p(r_t | z_t, a_t, z_{t+1})``, ``(T, n)``
    :param divergence: the two KL terms, summed over dimensions, ``(T + 1, n)``
    :param seen: 1 where the window has an observation, ``(T + 1, n)``
    :param done: 1 where it has a step, ``(T, n)``
    :param divergence_weight: 1; less is no bound
    """
    explained = ((observation_log - divergence_weight * divergence) * seen).sum(dim=0)
    return -(explained + (reward_log * done).sum(dim=0)).mean()


def han_loss(
    observation_log: th.Tensor,
    reward_log: th.Tensor,
    divergence: th.Tensor,
    seen: th.Tensor,
    done: th.Tensor,
    observation_dim: int,
    latent_dim: int,
) -> th.Tensor:
    """Return the objective of Han et al.'s code (oist-cnru/Variational-Recurrent-Models): each part by its size.

    The divergence is the mean over latent dimensions, likelihoods are divided by the number of things seen (reward
    included), and the mean is over all places, those behind the end of a window included. It is no bound.

    :param observation_log: as in :func:`elbo_loss`; likewise the other tensors
    :param observation_dim: size of an observation
    :param latent_dim: size of ``z¹``
    """
    likelihood = observation_log * seen
    likelihood = likelihood + th.cat([th.zeros_like(seen[:1]), reward_log * done])
    return (divergence * seen / latent_dim - likelihood / (observation_dim + 1)).mean()
