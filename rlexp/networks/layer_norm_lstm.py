"""The layer-normalised LSTM of Stable-Baselines 2, which Stable-Baselines3 does not have (Ba et al. 2016)."""

from __future__ import annotations

import torch as th
from torch import nn
from torch.nn import functional as F

LSTMState = tuple[th.Tensor, th.Tensor]


class LayerNormLSTM(nn.Module):
    """One layer, a replacement for ``torch.nn.LSTM``.

    ::

        i, f, o, g = LN(x W_x) + LN(h W_h) + b
        c' = σ(f) c + σ(i) tanh(g)
        h' = σ(o) tanh(LN(c'))

    Each normalisation is over all units at once, for the gates over all four of them, with its own gain and bias.

    :param input_size: size of the input
    :param hidden_size: units of the hidden state
    """

    num_layers = 1

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.from_input = nn.Parameter(th.empty(4 * hidden_size, input_size))
        self.from_hidden = nn.Parameter(th.empty(4 * hidden_size, hidden_size))
        self.bias = nn.Parameter(th.zeros(4 * hidden_size))
        self.input_norm = nn.LayerNorm(4 * hidden_size)
        self.hidden_norm = nn.LayerNorm(4 * hidden_size)
        self.cell_norm = nn.LayerNorm(hidden_size)
        nn.init.orthogonal_(self.from_input)
        nn.init.orthogonal_(self.from_hidden)

    def forward(self, inputs: th.Tensor, state: LSTMState) -> tuple[th.Tensor, LSTMState]:
        """Unroll over a sequence.

        :param inputs: ``(T, n, input_size)``
        :param state: hidden and cell, ``(1, n, hidden_size)`` each
        :return: hidden states of every step, ``(T, n, hidden_size)``, and the state after the last
        """
        hidden, cell = state[0][0], state[1][0]
        # The input's part of the gates does not depend on the state: once for all steps.
        begun = self.input_norm(F.linear(inputs, self.from_input)) + self.bias
        found = []
        for now in begun.unbind():
            gates = now + self.hidden_norm(F.linear(hidden, self.from_hidden))
            opened, proposed = gates.split((3 * self.hidden_size, self.hidden_size), dim=-1)
            enter, keep, show = th.sigmoid(opened).chunk(3, dim=-1)
            cell = keep * cell + enter * th.tanh(proposed)
            hidden = show * th.tanh(self.cell_norm(cell))
            found.append(hidden)
        return th.stack(found), (hidden.unsqueeze(0), cell.unsqueeze(0))
