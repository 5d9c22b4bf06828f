"""LSTMs over segments with episodes that begin inside."""

from __future__ import annotations

import torch as th
from torch import nn

from rlexp.networks.unroll import join, split, unroll


def test_against_one_step_at_a_time() -> None:
    th.manual_seed(0)
    lstm = nn.LSTM(3, 5, num_layers=2)
    inputs, lstm_states = th.randn(6, 4, 3), th.randn(4, 4, 5)
    starts = th.zeros(5, 4, dtype=th.bool)
    starts[0, 1] = starts[2, 1] = starts[2, 3] = starts[4, 0] = True
    beyond, indices = (
        th.randn(3, 3),
        th.tensor([[0, 4, 2], [1, 0, 3]]),
    )  # before the beginnings at steps 1, 5 and 3
    outputs, at_truncations = unroll(lstm, inputs, lstm_states, starts, indices, beyond)
    assert outputs.shape == (6, 4, 5) and at_truncations.shape == (3, 5)
    for b in range(4):
        state = (lstm_states[:2, b : b + 1].contiguous(), lstm_states[2:, b : b + 1].contiguous())
        for t in range(6):
            if t and starts[t - 1, b]:
                for k, place in enumerate(indices.T.tolist()):
                    if place == [t - 1, b]:
                        th.testing.assert_close(
                            lstm(beyond[k].view(1, 1, 3), state)[0].view(-1), at_truncations[k]
                        )
                state = (th.zeros(2, 1, 5), th.zeros(2, 1, 5))
            output, state = lstm(inputs[t, b].view(1, 1, 3), state)
            th.testing.assert_close(output.view(-1), outputs[t, b])


def test_nothing_flows_back_over_a_beginning() -> None:
    lstm = nn.LSTM(2, 3)
    inputs = th.randn(4, 2, 2, requires_grad=True)
    starts = th.tensor([[False, False], [True, False], [False, False]])
    outputs, at_truncations = unroll(
        lstm, inputs, th.zeros(2, 2, 3), starts, th.zeros(2, 0, dtype=th.int64), th.zeros(0, 2)
    )
    assert at_truncations.shape == (0, 3)
    outputs[3].sum().backward()
    assert inputs.grad is not None
    assert (inputs.grad[:2, 0] == 0).all() and (inputs.grad[2:, 0] != 0).all()
    assert (inputs.grad[:, 1] != 0).all()


def test_join_and_split() -> None:
    lstm_states = th.randn(4, 2, 3)
    hidden, cell = split(lstm_states)
    assert hidden.shape == cell.shape == (2, 2, 3) and th.equal(join((hidden, cell)), lstm_states)
