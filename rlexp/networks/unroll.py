"""Unrolling an LSTM over segments in which episodes may begin and end."""

from __future__ import annotations

from itertools import pairwise

import torch as th
from torch import nn


def unroll(
    lstm: nn.LSTM,
    inputs: th.Tensor,
    state: th.Tensor,
    starts: th.Tensor,
    truncations: th.Tensor,
    truncation_inputs: th.Tensor,
) -> tuple[th.Tensor, th.Tensor]:
    """Run an LSTM over B segments of T steps, resetting its state where an episode begins.

    Steps between two resets, of whichever segment, are run in one call.

    :param lstm: time-major, L layers, H hidden units
    :param inputs: ``(T, B, F)``
    :param state: hidden and cell state before the first step, ``(2 * L, B, H)``; see :func:`join`
    :param starts: bool, ``(T - 1, B)``: whether the second, third, ... step begins an episode
    :param truncations: ``(2, K)`` int64: step and segment of the K truncated episodes, whose last observation is not
        among the inputs because the next episode follows at once
    :param truncation_inputs: ``(K, F)``: the inputs at these observations; K = 0: ``truncations`` is ignored
    :return: outputs, ``(T, B, H)``, and those at the truncation observations, ``(K, H)``
    """
    resets = [0, *(starts.any(dim=1).nonzero().flatten() + 1).tolist(), len(inputs)]
    present = split(state)
    outputs, before_reset = [], {}
    for first, last in pairwise(resets):
        if first:
            keep = (~starts[first - 1]).to(inputs.dtype).view(1, -1, 1)
            present = (present[0] * keep, present[1] * keep)
        output, present = lstm(inputs[first:last], present)
        outputs.append(output)
        before_reset[last - 1] = present
    if not len(truncation_inputs):
        return th.cat(outputs), inputs.new_zeros(0, lstm.hidden_size)
    ends = [(before_reset[step], segment) for step, segment in truncations.T.tolist()]
    hidden = th.stack([one[0][:, segment] for one, segment in ends], dim=1)
    cell = th.stack([one[1][:, segment] for one, segment in ends], dim=1)
    at_truncations, _ = lstm(truncation_inputs.unsqueeze(0), (hidden, cell))
    return th.cat(outputs), at_truncations.squeeze(0)


def split(state: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
    """Return hidden and cell state, ``(L, B, H)`` each, of one tensor ``(2 * L, B, H)``."""
    hidden, cell = state.chunk(2)
    return hidden.contiguous(), cell.contiguous()


def join(state: tuple[th.Tensor, th.Tensor]) -> th.Tensor:
    """Return hidden and cell state, ``(L, B, H)`` each, as one tensor, ``(2 * L, B, H)``; inverse of :func:`split`."""
    return th.cat(state)
