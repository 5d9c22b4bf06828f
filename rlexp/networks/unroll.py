"""LSTMs over segments that episodes may begin and end in."""

from __future__ import annotations

from itertools import pairwise

import torch as th
from torch import nn


def unroll(
    lstm: nn.LSTM,
    inputs: th.Tensor,
    memory: th.Tensor,
    starts: th.Tensor,
    places: th.Tensor,
    beyond: th.Tensor,
) -> tuple[th.Tensor, th.Tensor]:
    """Run an LSTM over B segments of T steps, forgetting everything where an episode begins.

    Steps between two beginnings, of whichever segment, are run in one call.

    :param lstm: time-major, L layers, H hidden units
    :param inputs: ``(T, B, F)``
    :param memory: hidden and cell state before the first step, ``(2 * L, B, H)``; see :func:`join`
    :param starts: bool, ``(T - 1, B)``: whether the second, third, ... step begins an episode
    :param places: ``(2, K)`` int64: K times step and segment where an episode ends in a state that is not among
        the inputs because the next episode follows at once
    :param beyond: ``(K, F)``: the inputs in these states; none: ``places`` are not looked at
    :return: outputs, ``(T, B, H)``, and those in the states beyond, ``(K, H)``
    """
    borders = [0, *(starts.any(dim=1).nonzero().flatten() + 1).tolist(), len(inputs)]
    state = split(memory)
    outputs, before_border = [], {}
    for first, last in pairwise(borders):
        if first:
            keep = (~starts[first - 1]).to(inputs.dtype).view(1, -1, 1)
            state = (state[0] * keep, state[1] * keep)
        output, state = lstm(inputs[first:last], state)
        outputs.append(output)
        before_border[last - 1] = state
    if not len(beyond):
        return th.cat(outputs), inputs.new_zeros(0, lstm.hidden_size)
    ends = [(before_border[step], segment) for step, segment in places.T.tolist()]
    hidden = th.stack([state[0][:, segment] for state, segment in ends], dim=1)
    cell = th.stack([state[1][:, segment] for state, segment in ends], dim=1)
    at_limits, _ = lstm(beyond.unsqueeze(0), (hidden, cell))
    return th.cat(outputs), at_limits.squeeze(0)


def split(memory: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
    """Return hidden and cell state, ``(L, B, H)`` each, of one tensor ``(2 * L, B, H)``."""
    hidden, cell = memory.chunk(2)
    return hidden.contiguous(), cell.contiguous()


def join(state: tuple[th.Tensor, th.Tensor]) -> th.Tensor:
    """Return hidden and cell state as one tensor; the inverse of :func:`split`."""
    return th.cat(state)
