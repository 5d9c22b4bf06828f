"""A memory beside a direct view: what Peng et al. 2018 (arXiv 1710.06537) made of the LSTM in control."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch as th
from torch import nn
from torch.nn import functional as F

LSTMState = tuple[th.Tensor, th.Tensor]

LOG_STD_RANGE = (-20.0, 2.0)  # as in Stable-Baselines3's SAC


class MemoryBranch(nn.Module):
    """What happened so far: ``(a_{t-1}, o_t)``, one layer, then an LSTM over the whole sequence at once.

    :param observation_dim: size of an observation
    :param action_dim: size of an action
    :param units: of the layer
    :param lstm_units: of the LSTM
    """

    def __init__(self, observation_dim: int, action_dim: int, units: int, lstm_units: int) -> None:
        super().__init__()
        self.embed = nn.Linear(observation_dim + action_dim, units)
        self.lstm = nn.LSTM(units, lstm_units)

    def forward(
        self, observations: th.Tensor, previous_actions: th.Tensor, state: LSTMState | None = None
    ) -> tuple[th.Tensor, LSTMState]:
        """Remember a sequence.

        :param observations: ``(T, n, observation_dim)``
        :param previous_actions: ``(T, n, action_dim)``, the action before each observation
        :param state: of the LSTM, ``(1, n, lstm_units)`` each; None: zeros
        :return: memories, ``(T, n, lstm_units)``, and the state after the last of them
        """
        steps = th.relu(self.embed(th.cat([previous_actions, observations], dim=-1)))
        memories, after = self.lstm(steps, state)
        return memories, after


class Merged(nn.Module):
    """The direct view, one layer, beside the memory, then more layers.

    The first layer behind both is linear in each, so that what it makes of the memory serves many views.

    :param direct_dim: size of the direct view
    :param lstm_units: size of the memory
    :param units: of the layer and of each layer behind both
    :param n_layers: how many layers behind both, at least one
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

    def from_memory(self, memories: th.Tensor) -> th.Tensor:
        """Return the memory's part of the first layer, ``(..., units)``, of memories ``(..., lstm_units)``."""
        return F.linear(memories, self.both.weight[:, : self.lstm_units], self.both.bias)

    def forward(self, part: th.Tensor, view: th.Tensor) -> th.Tensor:
        """Return ``(..., out)`` of :meth:`from_memory` and of views ``(..., direct_dim)``."""
        seen = F.linear(th.relu(self.direct(view)), self.both.weight[:, self.lstm_units :])
        found: th.Tensor = self.head(th.relu(part + seen))
        return found


class RecurrentActor(nn.Module):
    """A Gaussian over actions before they are squashed, given everything seen and done so far.

    :param observation_dim: size of an observation
    :param action_dim: size of an action
    :param units: of every layer outside the LSTM
    :param lstm_units: of the LSTM
    """

    def __init__(self, observation_dim: int, action_dim: int, units: int, lstm_units: int) -> None:
        super().__init__()
        self.memory = MemoryBranch(observation_dim, action_dim, units, lstm_units)
        self.merged = Merged(observation_dim, lstm_units, units, 2, 2 * action_dim)

    def forward(
        self, observations: th.Tensor, previous_actions: th.Tensor, state: LSTMState | None = None
    ) -> tuple[th.Tensor, th.Tensor, LSTMState]:
        """Return means and ``log σ``, ``(T, n, action_dim)`` each, and the state after the sequence."""
        memories, after = self.memory(observations, previous_actions, state)
        mean, log_std = self.merged(self.merged.from_memory(memories), observations).chunk(2, dim=-1)
        return mean, log_std.clamp(*LOG_STD_RANGE), after


class RecurrentCritic(nn.Module):
    """Two action values, given everything seen and done so far.

    :param observation_dim: size of an observation
    :param action_dim: size of an action
    :param units: of every layer outside the LSTMs
    :param lstm_units: of the LSTMs
    :param shared: one memory for both values; False: one each
    """

    def __init__(
        self, observation_dim: int, action_dim: int, units: int, lstm_units: int, shared: bool
    ) -> None:
        super().__init__()
        self.memories = nn.ModuleList(
            MemoryBranch(observation_dim, action_dim, units, lstm_units) for _ in range(1 if shared else 2)
        )
        self.values = nn.ModuleList(
            Merged(observation_dim + action_dim, lstm_units, units, 1, 1) for _ in range(2)
        )

    def remember(self, observations: th.Tensor, previous_actions: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return what each value makes of its memory, ``(T, n, units)``, along sequences from their beginning."""
        found = [memory(observations, previous_actions)[0] for memory in self.memories]
        first, second = self.values
        return first.from_memory(found[0]), second.from_memory(found[-1])  # type: ignore[operator]

    def forward(
        self, parts: tuple[th.Tensor, th.Tensor], observations: th.Tensor, actions: th.Tensor
    ) -> tuple[th.Tensor, ...]:
        """Return both values, ``(T, n)`` each, of actions ``(T, n, action_dim)`` after :meth:`remember`."""
        view = th.cat([observations, actions], dim=-1)
        return tuple(value(part, view).squeeze(-1) for value, part in zip(self.values, parts, strict=True))


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """For a while, let gradients pass through a module but not into it."""
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)
