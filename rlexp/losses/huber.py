"""The Huber loss of temporal-difference errors."""

from __future__ import annotations

import torch as th


def huber(errors: th.Tensor, clip: float | None, weights: th.Tensor | None = None) -> th.Tensor:
    """``δ²/2`` within ±clip and a straight line beyond, per element.

    Its derivative is the error clipped to ±clip: the "clipped TD error" of Mnih et al. 2015, methods. Torch's
    ``F.huber_loss`` computes the same function with other last digits, and takes no weights per element.

    :param errors: δ, any shape
    :param clip: above 0; None: a parabola everywhere
    :param weights: factors, of the same shape; None: 1
    :return: of the same shape
    """
    if clip is None:
        squared = errors.square()
        return (squared if weights is None else weights * squared) / 2
    size = errors.abs()
    clipped = size.clamp(max=clip)
    return (clipped if weights is None else weights * clipped) * (size - clipped / 2)
