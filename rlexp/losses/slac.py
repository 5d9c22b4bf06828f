"""The latent model's objective: the evidence lower bound and its published variants.

Lee et al. 2020, "Stochastic latent actor-critic" (arXiv 1907.00953), eq. 6 and appendix A. A sequence is ``o_1 .. o_{τ+1}``
with the actions ``a_1 .. a_τ`` and the rewards ``r_1 .. r_τ`` in between, ``T = τ``::

    log p(o, r | a) >= E_q [ Σ_t log p(o_t | z_t) + Σ_t log p(r_t | z_t, a_t, z_{t+1})
                             - KL(q(z¹_1 | o_1) || p(z¹_1)) - Σ_t KL(q(z¹_{t+1} | o_{t+1}, z²_t, a_t) || p(z¹_{t+1} | z²_t, a_t)) ]

``z²`` is sampled from the same network in inference and in generation, so that it adds no divergence.
"""  # noqa: E501  (the equation)

from __future__ import annotations

import torch as th


def elbo_loss(
    observation_log_prob: th.Tensor,
    reward_log_prob: th.Tensor,
    divergence: th.Tensor,
    observation_mask: th.Tensor,
    step_mask: th.Tensor,
    divergence_weight: float = 1.0,
) -> th.Tensor:
    """Return minus the evidence lower bound, summed along each sequence, averaged over sequences.

    :param observation_log_prob: ``log p(o_t | z_t)``, ``(T + 1, n)``
    :param reward_log_prob: ``log p(r_t | z_t, a_t, z_{t+1})``, ``(T, n)``
    :param divergence: the two KL terms, summed over dimensions, ``(T + 1, n)``
    :param observation_mask: 1 for observations of the sequence, 0 for padding, ``(T + 1, n)``
    :param step_mask: 1 for steps of the sequence, 0 for padding, ``(T, n)``
    :param divergence_weight: 1 for the bound; a smaller one is used for annealing
    """
    explained = ((observation_log_prob - divergence_weight * divergence) * observation_mask).sum(dim=0)
    return -(explained + (reward_log_prob * step_mask).sum(dim=0)).mean()


def han_loss(
    observation_log_prob: th.Tensor,
    reward_log_prob: th.Tensor,
    divergence: th.Tensor,
    observation_mask: th.Tensor,
    step_mask: th.Tensor,
    observation_dim: int,
    latent_dim: int,
) -> th.Tensor:
    """Return the objective of Han et al.'s code (oist-cnru/Variational-Recurrent-Models): each term by its size.

    The divergence is a mean over latent dimensions, likelihoods are divided by the number of observed dimensions (the
    reward included), and the mean is over all entries, padding included. It is not a bound.

    :param observation_log_prob: ``log p(o_t | z_t)``, ``(T + 1, n)``
    :param reward_log_prob: ``log p(r_t | z_t, a_t, z_{t+1})``, ``(T, n)``
    :param divergence: the two KL terms, summed over dimensions, ``(T + 1, n)``
    :param observation_mask: 1 for observations of the sequence, 0 for padding, ``(T + 1, n)``
    :param step_mask: 1 for steps of the sequence, 0 for padding, ``(T, n)``
    :param observation_dim: size of an observation
    :param latent_dim: size of ``z¹``
    """
    likelihood = observation_log_prob * observation_mask
    likelihood = likelihood + th.cat([th.zeros_like(observation_mask[:1]), reward_log_prob * step_mask])
    return (divergence * observation_mask / latent_dim - likelihood / (observation_dim + 1)).mean()
