"""Temporal-difference errors of action values and their weighted loss."""

from __future__ import annotations

import torch as th

from rlexp.losses.huber import huber


def td_targets(
    rewards: th.Tensor,
    dones: th.Tensor,
    discounts: th.Tensor | float,
    next_values: th.Tensor,
    online_values: th.Tensor | None = None,
) -> th.Tensor:
    """``R + γ^m (1 - done) Q(s', a')``, with ``a'`` the greedy action.

    The maximum over ``next_values`` itself is Q-learning's (Mnih et al. 2015); with
    ``online_values`` it is double Q-learning (van Hasselt et al. 2016, eq. 4).

    :param rewards: returns over m steps, ``(n, 1)``
    :param dones: 1 at a true terminal, 0 at a time limit, ``(n, 1)``
    :param discounts: ``γ^m``, ``(n, 1)`` or a number
    :param next_values: of the target network, ``(n, n_actions)``
    :param online_values: of the online network, ``(n, n_actions)``; None: the target network chooses, too
    :return: ``(n, 1)``
    """
    chooser = next_values if online_values is None else online_values
    best = chooser.argmax(dim=1, keepdim=True)
    return rewards + (1.0 - dones) * discounts * next_values.gather(1, best)


def weighted_td_loss(td_errors: th.Tensor, weights: th.Tensor, clip: float | None) -> th.Tensor:
    """Mean of ``w f(δ)`` with the Huber loss f; weights as in Schaul et al. 2016, algorithm 1.

    :param td_errors: ``(n, 1)``
    :param weights: importance weights, ``(n, 1)``
    :param clip: TD errors are clipped to ±clip in the gradient; None: not at all
    :return: a scalar
    """
    return huber(td_errors, clip, weights).mean()


def weighted_td_gradient(td_errors: th.Tensor, weights: th.Tensor, clip: float | None) -> th.Tensor:
    """Derivative of :func:`weighted_td_loss` with respect to the predicted values: ``-w clip(δ) / n``.

    Passed to ``values.backward``, it saves building the graph of the loss: a tenth of an update of a small network.

    :param td_errors: targets minus values, ``(n, 1)``
    :param weights: importance weights, ``(n, 1)``
    :param clip: above 0; None: no clipping
    :return: ``(n, 1)``
    """
    inside = td_errors if clip is None else td_errors.clamp(-clip, clip)
    return inside * weights / -len(td_errors)
