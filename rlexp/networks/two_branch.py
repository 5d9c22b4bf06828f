"""Two-branch recurrent networks: an LSTM over the history beside the current observation (Peng et al. 2018).

"Sim-to-real transfer of robotic control with dynamics randomization", arXiv 1710.06537.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch as th
from torch import nn
from torch.nn import functional as F

LSTMState = tuple[th.Tensor, th.Tensor]

LOG_STD_RANGE = (-20.0, 2.0)  # as in Stable-Baselines3's SAC


class HistoryBranch(nn.Module):
    """Encodes the history: ``(a_{t-1}, o_t)``, a dense layer, then an LSTM over the whole sequence at once.

    :param observation_dim: size of an observation
    :param action_dim: size of an action
    :param units: of the dense layer
    :param lstm_units: of the LSTM
    """

    def __init__(self, observation_dim: int, action_dim: int, units: int, lstm_units: int) -> None:
        super().__init__()
        self.embed = nn.Linear(observation_dim + action_dim, units)
        self.lstm = nn.LSTM(units, lstm_units)

    def forward(
        self, observations: th.Tensor, previous_actions: th.Tensor, state: LSTMState | None = None
    ) -> tuple[th.Tensor, LSTMState]:
        """Encode a sequence.

        :param observations: ``(T, n, observation_dim)``
        :param previous_actions: ``(T, n, action_dim)``, the previous action of each observation
        :param state: of the LSTM, ``(1, n, lstm_units)`` each; None: zeros
        :return: encodings, ``(T, n, lstm_units)``, and the state after the last step
        """
        steps = th.relu(self.embed(th.cat([previous_actions, observations], dim=-1)))
        encodings, after = self.lstm(steps, state)
        return encodings, after


class TwoBranchHead(nn.Module):
    """The current input through a dense layer, joined with the encoded history, then more dense layers.

    The first joint layer is linear in both, so that its history part can be reused for several inputs.

    :param direct_dim: size of the current input
    :param lstm_units: size of the encoded history
    :param units: of every dense layer
    :param n_layers: number of joint layers, at least one
    :param out: size of the output, linear
    """

    def __init__(self, direct_dim: int, lstm_units: int, units: int, n_layers: int, out: int) -> None:
        super().__init__()
        self.lstm_units = lstm_units
        self.direct = nn.Linear(direct_dim, units)
        self.both = nn.Linear(lstm_units + units, units)
        layers: list[nn.Module] = []
        for _ in range(n_layers - 1):
            layers += [nn.Linear(units, units), nn.ReLU()]
        self.head = nn.Sequential(*layers, nn.Linear(units, out))

    def from_history(self, encodings: th.Tensor) -> th.Tensor:
        """Return the history's part of the first joint layer, ``(..., units)``.

        :param encodings: of :class:`HistoryBranch`, ``(..., lstm_units)``
        """
        return F.linear(encodings, self.both.weight[:, : self.lstm_units], self.both.bias)

    def forward(self, history: th.Tensor, inputs: th.Tensor) -> th.Tensor:
        """Return the output, ``(..., out)``.

        :param history: from :meth:`from_history`, ``(..., units)``
        :param inputs: the current ones, ``(..., direct_dim)``
        """
        direct = F.linear(th.relu(self.direct(inputs)), self.both.weight[:, self.lstm_units :])
        found: th.Tensor = self.head(th.relu(history + direct))
        return found


class RecurrentActor(nn.Module):
    """A Gaussian over actions before squashing, given the whole history.

    :param observation_dim: size of an observation
    :param action_dim: size of an action
    :param units: of every layer outside the LSTM
    :param lstm_units: of the LSTM
    """

    def __init__(self, observation_dim: int, action_dim: int, units: int, lstm_units: int) -> None:
        super().__init__()
        self.memory = HistoryBranch(observation_dim, action_dim, units, lstm_units)
        self.merged = TwoBranchHead(observation_dim, lstm_units, units, 2, 2 * action_dim)

    def forward(
        self, observations: th.Tensor, previous_actions: th.Tensor, state: LSTMState | None = None
    ) -> tuple[th.Tensor, th.Tensor, LSTMState]:
        """Return means and ``log σ``, ``(T, n, action_dim)`` each, and the state after the sequence.

        :param observations: ``(T, n, observation_dim)``
        :param previous_actions: ``(T, n, action_dim)``, the previous action of each observation
        :param state: of the LSTM, ``(1, n, lstm_units)`` each; None: zeros
        """
        encodings, after = self.memory(observations, previous_actions, state)
        mean, log_std = self.merged(self.merged.from_history(encodings), observations).chunk(2, dim=-1)
        return mean, log_std.clamp(*LOG_STD_RANGE), after


class RecurrentCritic(nn.Module):
    """Two action values, given the whole history.

    :param observation_dim: size of an observation
    :param action_dim: size of an action
    :param units: of every layer outside the LSTMs
    :param lstm_units: of the LSTMs
    :param shared: one history branch for both values; False: one each
    """

    def __init__(
        self, observation_dim: int, action_dim: int, units: int, lstm_units: int, shared: bool
    ) -> None:
        super().__init__()
        self.memories = nn.ModuleList(
            HistoryBranch(observation_dim, action_dim, units, lstm_units) for _ in range(1 if shared else 2)
        )
        self.values = nn.ModuleList(
            TwoBranchHead(observation_dim + action_dim, lstm_units, units, 1, 1) for _ in range(2)
        )

    def encode_history(
        self, observations: th.Tensor, previous_actions: th.Tensor
    ) -> tuple[th.Tensor, th.Tensor]:
        """Return the history's part of each value, ``(T, n, units)``, from the beginning of the sequences.

        :param observations: ``(T, n, observation_dim)``
        :param previous_actions: ``(T, n, action_dim)``
        """
        found = [memory(observations, previous_actions)[0] for memory in self.memories]
        first, second = self.values
        return first.from_history(found[0]), second.from_history(found[-1])  # type: ignore[operator]

    def forward(
        self, history: tuple[th.Tensor, th.Tensor], observations: th.Tensor, actions: th.Tensor
    ) -> tuple[th.Tensor, ...]:
        """Return both values, ``(T, n)`` each.

        :param history: from :meth:`encode_history`
        :param observations: ``(T, n, observation_dim)``
        :param actions: to be valued, ``(T, n, action_dim)``
        """
        inputs = th.cat([observations, actions], dim=-1)
        return tuple(
            value(part, inputs).squeeze(-1) for value, part in zip(self.values, history, strict=True)
        )


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """Within the context, let gradients pass through a module but not into its parameters.

    :param module: whose parameters are frozen
    """
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)
