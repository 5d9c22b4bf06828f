"""Temporal-difference errors of action values and their weighted loss."""

from __future__ import annotations

import torch as th


def td_targets(
    rewards: th.Tensor,
    dones: th.Tensor,
    discounts: th.Tensor | float,
    next_values: th.Tensor,
    choosing_values: th.Tensor | None = None,
) -> th.Tensor:
    """``R + γ^m (1 - done) Q(s', a')``, with the greedy action of another network where one is given.

    The maximum over ``next_values`` itself is Q-learning's (Mnih et al. 2015); with ``choosing_values`` of the online
    network it is double Q-learning (van Hasselt et al. 2016, eq. 4).

    :param rewards: returns over m steps, ``(n, 1)``
    :param dones: 1 where the episode came to its own end, ``(n, 1)``
    :param discounts: ``γ^m``, ``(n, 1)`` or a number
    :param next_values: of the target network, ``(n, n_actions)``
    :param choosing_values: of the network that chooses the action, ``(n, n_actions)``; None: the target network
    :return: ``(n, 1)``
    """
    chooser = next_values if choosing_values is None else choosing_values
    best = chooser.argmax(dim=1, keepdim=True)
    return rewards + (1.0 - dones) * discounts * next_values.gather(1, best)


def weighted_td_loss(td_errors: th.Tensor, weights: th.Tensor, clip: float | None) -> th.Tensor:
    """Mean of ``w f(δ)``, where ``f`` is ``δ²/2``, going on as a straight line beyond ``clip``.

    Its derivative is the TD error clipped to ±clip, which is what "clipping the TD error" stands for (Mnih et al. 2015,
    methods); weights as in Schaul et al. 2016, algorithm 1.

    :param td_errors: ``(n, 1)``
    :param weights: importance weights, ``(n, 1)``
    :param clip: above 0; None: not at all
    :return: a number
    """
    if clip is None:
        return (weights * td_errors.square()).mean() / 2
    size = td_errors.abs()
    inside = size.clamp(max=clip)
    return (weights * inside * (size - inside / 2)).mean()


def weighted_td_gradient(td_errors: th.Tensor, weights: th.Tensor, clip: float | None) -> th.Tensor:
    """Derivative of :func:`weighted_td_loss` by the values that the targets are compared with: ``-w clip(δ) / n``.

    Handed to ``values.backward``, it saves the graph of the loss, a tenth of an update of a small network.

    :param td_errors: targets minus values, ``(n, 1)``
    :param weights: importance weights, ``(n, 1)``
    :param clip: above 0; None: not at all
    :return: ``(n, 1)``
    """
    inside = td_errors if clip is None else td_errors.clamp(-clip, clip)
    return inside * weights / -len(td_errors)
