"""The actors and critics of SLAC: what was seen goes to the actor, what it is taken to mean to the critics."""

from __future__ import annotations

from typing import Any

import torch as th
from stable_baselines3.common.torch_layers import create_mlp
from torch import nn
from torch.nn import functional as F

from rlexp.buffers.sequence_replay import SequenceBatch
from rlexp.networks.two_branch import LOG_STD_RANGE, RecurrentActor

Heads = tuple[th.Tensor, th.Tensor]  # mean and log of the standard deviation


class StackActor(nn.Module):
    """A Gaussian over actions before they are squashed, given the last observations (and the actions in between).

    :param observation_dim: size of an observation
    :param action_dim: size of an action
    :param length: observations that it sees
    :param with_actions: whether it sees the actions in between, too
    :param repeats: what stands before the first observation of an episode: that observation again; False: zeros
    :param hidden: units of the hidden layers
    :param activation: between layers
    :param separate: networks of their own for mean and standard deviation
    """

    def __init__(
        self,
        observation_dim: int,
        action_dim: int,
        length: int,
        with_actions: bool,
        repeats: bool,
        hidden: list[int],
        activation: type[nn.Module],
        separate: bool,
    ) -> None:
        super().__init__()
        self.length = length
        self.with_actions = with_actions
        self.repeats = repeats
        in_dim = length * observation_dim + (length - 1) * action_dim * with_actions
        self.mean = nn.Sequential(*create_mlp(in_dim, (2 - separate) * action_dim, hidden, activation))
        self.deviation = (
            nn.Sequential(*create_mlp(in_dim, action_dim, hidden, activation)) if separate else None
        )

    def forward(self, stacked: th.Tensor) -> Heads:
        """Return mean and ``log σ``, ``(..., action_dim)`` each, of what :meth:`stack` or :meth:`join` returned."""
        if self.deviation is not None:
            mean, log_std = self.mean(stacked), self.deviation(stacked)
        else:
            mean, log_std = self.mean(stacked).chunk(2, dim=-1)
        return mean, log_std.clamp(*LOG_STD_RANGE)

    def join(self, observations: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Put one stack together.

        :param observations: oldest first, ``(n, length, observation_dim)``
        :param actions: those in between, ``(n, length - 1, action_dim)``
        :return: ``(n, in_dim)``
        """
        parts = (
            [observations.flatten(1), actions.flatten(1)] if self.with_actions else [observations.flatten(1)]
        )
        return th.cat(parts, dim=-1)

    def stack(self, windows: SequenceBatch) -> th.Tensor:
        """Return the stack at every observation of some windows, ``(T + 1, n, in_dim)``.

        Right from the window's ``before`` on, if that is ``length - 1`` or the window begins with its episode.
        """
        seen, done = windows.observations, windows.previous_actions
        first = seen[:1].expand(self.length - 1, -1, -1)
        padded = th.cat([first if self.repeats else th.zeros_like(first), seen])
        parts = [padded.unfold(0, self.length, 1).transpose(2, 3).flatten(2)]
        if self.with_actions and self.length > 1:
            padded = F.pad(done, (0, 0, 0, 0, self.length - 2, 0))
            parts.append(padded.unfold(0, self.length - 1, 1).transpose(2, 3).flatten(2))
        return th.cat(parts, dim=-1)


class LatentCritic(nn.Module):
    """Two action values of a latent state, and its value where that is learned, too.

    :param latent_dim: size of what it is shown of the latent state
    :param action_dim: size of an action
    :param hidden: units of the hidden layers
    :param activation: between layers
    :param with_value: whether there is a state value
    """

    def __init__(
        self,
        latent_dim: int,
        action_dim: int,
        hidden: list[int],
        activation: type[nn.Module],
        with_value: bool,
    ) -> None:
        super().__init__()
        self.action_values = nn.ModuleList(
            nn.Sequential(*create_mlp(latent_dim + action_dim, 1, hidden, activation)) for _ in range(2)
        )
        self.value = nn.Sequential(*create_mlp(latent_dim, 1, hidden, activation)) if with_value else None

    def forward(self, latents: th.Tensor, actions: th.Tensor) -> tuple[th.Tensor, ...]:
        """Return both action values, ``(...)`` each."""
        both = th.cat([latents, actions], dim=-1)
        return tuple(net(both).squeeze(-1) for net in self.action_values)


class SequenceActor(RecurrentActor):
    """The actor of SAC-LSTM over whole windows, which sees past their beginning."""

    def over(self, windows: SequenceBatch) -> Heads:
        """Return mean and ``log σ`` at every observation, ``(T + 1, n, action_dim)`` each."""
        mean, log_std, _ = self(windows.observations, windows.previous_actions)
        return mean, log_std


def at(values: th.Tensor, places: th.Tensor) -> th.Tensor:
    """Return what stands in some places of a sequence, each window having its own.

    :param values: ``(T, n, ...)``
    :param places: int64, ``(K, n)``, each below T
    :return: ``(K, n, ...)``
    """
    columns: Any = th.arange(places.shape[1], device=places.device)
    found: th.Tensor = values[places, columns]
    return found
