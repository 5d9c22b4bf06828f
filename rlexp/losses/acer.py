"""ACER: truncated importance weights with bias correction, and its critics.

Wang et al. 2017, "Sample efficient actor-critic with experience replay", for discrete and continuous actions.

The policy gradients are ascent directions with respect to the statistics of each sample's action
distribution, before any averaging, so that they can be brought into the trust region
(:mod:`rlexp.losses.trust_region`) sample by sample. Everything that enters them counts as a constant.
"""

from __future__ import annotations

import math

import torch as th


def truncated_weights(ratios: th.Tensor, cap: float) -> th.Tensor:
    """Return ``min(c, ρ)``, the weight of the action taken.

    :param ratios: ``ρ``, any shape
    :param cap: ``c``; infinity: ordinary importance sampling
    """
    return ratios.clamp(max=cap)


def correction_weights(ratios: th.Tensor, cap: float) -> th.Tensor:
    """Return ``[1 - c/ρ]₊``, the weight of the bias correction; 0 where ``ρ <= c``.

    :param ratios: ``ρ``, any shape
    :param cap: ``c``
    """
    if math.isinf(cap):
        return th.zeros_like(ratios)
    return (1 - cap / ratios.clamp(min=cap)).clamp(min=0)


@th.no_grad()
def categorical_policy_gradient(
    probabilities: th.Tensor,
    behaviour: th.Tensor,
    actions: th.Tensor,
    returns: th.Tensor,
    action_values: th.Tensor,
    state_values: th.Tensor,
    *,
    cap: float = 10.0,
    bias_correction: bool = True,
    ent_coef: float = 0.0,
) -> th.Tensor:
    """Policy gradient with respect to the probabilities φ = π(·|x): Wang et al.'s g^acer, and the entropy's.

    ::

        g = min(c, ρ_a) (Q^ret - V) ∇_φ log π(a)
            + Σ_a' [1 - c/ρ_a']₊ π(a') (Q(a') - V) ∇_φ log π(a') + η ∇_φ H

    where ``∇_φ log π(a)`` has ``1/π(a)`` as its entry ``a``, so that the entry ``a'`` of the correction is
    ``[1 - c/ρ_a']₊ (Q(a') - V)``, and ``∇_φ H = -log π - 1``.

    :param probabilities: π, ``(N, A)``
    :param behaviour: μ, the probabilities of all actions when the action was taken, ``(N, A)``
    :param actions: int64, ``(N,)``
    :param returns: ``Q^ret``, ``(N,)``
    :param action_values: ``Q(x, ·)``, ``(N, A)``
    :param state_values: ``V(x)``, ``(N,)``
    :param cap: ``c``
    :param bias_correction: whether to add the second term
    :param ent_coef: weight η of the entropy
    :return: ``(N, A)``
    """
    index = actions.unsqueeze(-1)
    taken = probabilities.gather(-1, index)
    # min(c, π/μ) / π is min(c/π, 1/μ)
    weight = th.minimum(cap / taken, 1 / behaviour.gather(-1, index))
    gradient = th.zeros_like(probabilities)
    gradient.scatter_(-1, index, weight * (returns - state_values).unsqueeze(-1))
    if bias_correction and not math.isinf(cap):
        correction = correction_weights(probabilities / behaviour, cap)
        gradient.addcmul_(correction, action_values - state_values.unsqueeze(-1))
    if ent_coef:
        gradient -= ent_coef * (probabilities.log() + 1)
    return gradient


@th.no_grad()
def gaussian_policy_gradient(
    mean: th.Tensor,
    log_std: th.Tensor,
    actions: th.Tensor,
    ratios: th.Tensor,
    advantages: th.Tensor,
    sampled_actions: th.Tensor,
    sampled_ratios: th.Tensor,
    sampled_advantages: th.Tensor,
    *,
    learn_std: bool,
    cap: float = 5.0,
    bias_correction: bool = True,
    ent_coef: float = 0.0,
) -> th.Tensor:
    """Policy gradient with respect to mean, or mean and log σ, of a diagonal Gaussian.

    ::

        g = min(c, ρ) (Q^opc - V) ∇_φ log f(a) + [1 - c/ρ']₊ (Q̃(x, a') - V) ∇_φ log f(a') + η ∇_φ H

    with one sampled ``a' ~ f(·|φ)`` instead of the sum over actions, ``ρ' = f(a'|φ) / f(a'|φ_μ)``,
    ``∇_mean log f(a) = (a - mean) / σ²`` and ``∇_{log σ} log f(a) = (a - mean)² / σ² - 1``.

    :param mean: ``(N, d)``
    :param log_std: ``(N, d)``
    :param actions: the actions taken, ``(N, d)``
    :param ratios: ``ρ``, ``(N,)``
    :param advantages: ``Q^opc - V``, ``(N,)``
    :param sampled_actions: ``a'``, ``(N, d)``
    :param sampled_ratios: ``ρ'``, ``(N,)``
    :param sampled_advantages: ``Q̃(x, a') - V``, ``(N,)``
    :param learn_std: whether log σ is one of the statistics
    :param cap: ``c``
    :param bias_correction: whether to add the second term
    :param ent_coef: weight η of the entropy, whose gradient is 1 for every log σ
    :return: ``(N, 2d)``, the mean's part first, or ``(N, d)``
    """
    weight = truncated_weights(ratios, cap) * advantages
    gradient = weight.unsqueeze(-1) * _gaussian_score(mean, log_std, actions, learn_std)
    if bias_correction and not math.isinf(cap):
        weight = correction_weights(sampled_ratios, cap) * sampled_advantages
        gradient += weight.unsqueeze(-1) * _gaussian_score(mean, log_std, sampled_actions, learn_std)
    if ent_coef and learn_std:
        gradient[:, mean.shape[-1] :] += ent_coef
    return gradient


def _gaussian_score(mean: th.Tensor, log_std: th.Tensor, actions: th.Tensor, learn_std: bool) -> th.Tensor:
    scaled = (actions - mean) * th.exp(-log_std)
    by_mean = scaled * th.exp(-log_std)
    return th.cat([by_mean, scaled.square() - 1], dim=-1) if learn_std else by_mean


def stochastic_dueling(state_values: th.Tensor, advantages: th.Tensor, sampled: th.Tensor) -> th.Tensor:
    """Return ``Q̃(x, a) = V(x) + A(x, a) - 1/n Σ_i A(x, u_i)`` with ``u_i ~ π(·|x)``, the stochastic dueling network.

    In expectation over the ``u_i`` the mean of ``Q̃`` under the policy is ``V``.

    :param state_values: ``V(x)``, ``(N,)``
    :param advantages: ``A(x, a)`` for any number of actions, ``(..., N)``
    :param sampled: ``A(x, u_i)``, ``(n, N)``
    """
    return state_values + advantages - sampled.mean(dim=0)


def q_loss(action_values: th.Tensor, returns: th.Tensor) -> th.Tensor:
    """Return ``½ (Q^ret - Q(x, a))²``, whose gradient is ``-(Q^ret - Q) ∇Q``; same shape as given.

    :param action_values: ``Q(x, a)``, any shape
    :param returns: ``Q^ret``, a constant, same shape
    """
    return 0.5 * (returns - action_values).square()


def v_loss(
    state_values: th.Tensor, action_values: th.Tensor, returns: th.Tensor, ratios: th.Tensor
) -> th.Tensor:
    """Return ``½ (V_target - V)²`` with ``V_target = min(1, ρ) (Q^ret - Q̃) + V`` held constant.

    :param state_values: ``V(x)``, any shape
    :param action_values: ``Q̃(x, a)``, a constant, same shape
    :param returns: ``Q^ret``, a constant, same shape
    :param ratios: ``ρ``, same shape
    """
    error = (truncated_weights(ratios, 1.0) * (returns - action_values)).detach()
    return 0.5 * (state_values.detach() + error - state_values).square()
