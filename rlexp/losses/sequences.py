"""Double Q-learning on sequences: rescaled values, one-step and n-step targets, masks, priorities (R2D2, R2D3, DQfD).

Everything is time-major: B sequences of T steps, each within one episode. The first ``lengths[b]`` steps of sequence b
are valid, the rest is padding. Observation t precedes step t, so that there are T + 1 of them and observation
``lengths[b]`` follows the last step, be it a terminal, a time limit or just the end of the sequence.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch as th


def rescale(values: th.Tensor, epsilon: float) -> th.Tensor:
    """``h(x) = sign(x) (sqrt(|x| + 1) - 1) + ε x`` (Pohlen et al. 2018; Kapturowski et al. 2019, section 2.3).

    Written without a difference of nearly equal numbers, so that single precision keeps its digits at small values.

    :param values: any shape
    :param epsilon: ε, at least 0; 10^-3 in the paper
    """
    return values / ((values.abs() + 1.0).sqrt() + 1.0) + epsilon * values


def unrescale(values: th.Tensor, epsilon: float) -> th.Tensor:
    """Inverse of :func:`rescale`.

    ``h^-1(y) = sign(y) (((sqrt(1 + 4ε(|y| + 1 + ε)) - 1) / 2ε)^2 - 1)``. This form loses all but three digits
    in single precision at ε = 10^-3; with ``s`` for the root, the bracket is ``(1 + z)^2 - 1 = z (z + 2)`` where
    ``z = |y| (2 - 4ε / (s + 1 + 2ε)) / (s + 1)``, which has no cancellation and also holds for ε = 0.

    :param values: any shape
    :param epsilon: the same ε
    """
    size = values.abs()
    root = (1.0 + 4.0 * epsilon * (size + 1.0 + epsilon)).sqrt()
    excess = size * (2.0 - 4.0 * epsilon / (root + (1.0 + 2.0 * epsilon))) / (root + 1.0)
    return values.sign() * excess * (excess + 2.0)


def valid_steps(n_steps: int, lengths: th.Tensor) -> th.Tensor:
    """Return the step mask: 1 for valid steps, 0 for padding, ``(T, B)``.

    :param n_steps: T
    :param lengths: number of valid steps, ``(B,)``
    """
    return (th.arange(n_steps, device=lengths.device)[:, None] < lengths).float()


def greedy_values(action_values: th.Tensor, online_values: th.Tensor | None = None) -> th.Tensor:
    """``Q'(x, argmax_a Q(x, a))``: the online network chooses, the target network values (van Hasselt et al. 2016).

    :param action_values: of the target network, ``(..., n_actions)``
    :param online_values: of the online network, ``(..., n_actions)``; None: the target network chooses, too
    :return: ``(...)``
    """
    chooser = action_values if online_values is None else online_values
    return action_values.gather(-1, chooser.argmax(-1, keepdim=True)).squeeze(-1)


@th.no_grad()
def n_step_targets(
    rewards: th.Tensor,
    values: th.Tensor,
    lengths: th.Tensor,
    terminated: th.Tensor,
    n_steps: int,
    gamma: float,
    epsilon: float | None,
) -> th.Tensor:
    """``h(Σ_{k<m} γ^k r_{t+k} + γ^m h^-1(V_{t+m}))`` with ``m = min(n, length - t)`` (Kapturowski et al. 2019, eq. 1).

    Near the end of a sequence fewer rewards are summed, so that every step has a target. A true terminal is not
    bootstrapped from, a time limit is.

    :param rewards: ``(T, B)``; 0 in padding
    :param values: ``V_t`` of every observation as the network predicts it, that is rescaled, ``(T + 1, B)``
    :param lengths: ``(B,)`` int64, from 1 to T
    :param terminated: bool, ``(B,)``: whether step ``length - 1`` reached a true terminal
    :param n_steps: n; 1 is the one-step target
    :param gamma: γ
    :param epsilon: of :func:`rescale`; None: values are not rescaled
    :return: ``(T, B)``, without gradient; meaningless in padding
    """
    horizon = len(rewards)
    plain = values if epsilon is None else unrescale(values, epsilon)
    returns = rewards.clone()
    for k in range(1, min(n_steps, horizon)):
        returns[:-k] += gamma**k * rewards[k:]
    steps = th.arange(horizon, device=rewards.device)[:, None]
    after = (steps + n_steps).minimum(lengths)  # (T, B): the observation that is bootstrapped from
    alive = ~(terminated & (after == lengths))
    discounts = th.pow(gamma, (after - steps).float())
    returns += alive * discounts * plain.gather(0, after)
    return returns if epsilon is None else rescale(returns, epsilon)


def step_mean(terms: th.Tensor, valid: th.Tensor, weights: th.Tensor) -> th.Tensor:
    """Mean over the valid steps of a batch, weighted by the sequences' importance weights.

    :param terms: ``(T, B)``
    :param valid: ``(T, B)``, 0 in padding
    :param weights: importance weights of the sequences, ``(B,)``
    """
    return (terms * valid * weights).sum() / valid.sum().clamp(min=1.0)


def large_margin(action_values: th.Tensor, expert_actions: th.Tensor, margin: float) -> th.Tensor:
    """``max_a [Q(s, a) + l(a_E, a)] - Q(s, a_E)`` with ``l`` 0 for the expert's action, else the margin.

    Hester et al. 2018, eq. for ``J_E`` (after Piot et al. 2014). Never negative; 0 once the expert's action leads by
    the margin.

    :param action_values: ``(..., n_actions)``
    :param expert_actions: int64, ``(...)``
    :param margin: by which the expert's action has to lead
    :return: ``(...)``
    """
    taken = expert_actions.unsqueeze(-1)
    demanded = (action_values + margin).scatter(-1, taken, action_values.gather(-1, taken))
    return demanded.amax(-1) - action_values.gather(-1, taken).squeeze(-1)


def l2_penalty(parameters: Iterable[th.Tensor]) -> th.Tensor:
    """``Σ θ²`` over weights and biases, an explicit loss term as in Hester et al. 2018, no decoupled weight decay.

    :param parameters: of the network
    """
    return th.stack([parameter.square().sum() for parameter in parameters]).sum()


@th.no_grad()
def sequence_priorities(sizes: th.Tensor, valid: th.Tensor, eta: float) -> th.Tensor:
    """``η max_t |δ_t| + (1 - η) mean_t |δ_t|`` over the valid steps (Kapturowski et al. 2019, section 2.3).

    Of absolute errors, not squared ones, so that the exponent α has its usual meaning.

    :param sizes: ``|δ_t|``, ``(T, B)``
    :param valid: ``(T, B)``, 0 in padding
    :param eta: η, 0.9 in the paper
    :return: ``(B,)``
    """
    sizes = sizes * valid
    mean = sizes.sum(0) / valid.sum(0).clamp(min=1.0)
    return eta * sizes.amax(0) + (1.0 - eta) * mean
