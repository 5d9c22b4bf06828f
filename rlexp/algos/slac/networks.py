"""The actors and critics of SLAC: actors read observations, critics read latent states."""

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
    """A Gaussian over actions before they are squashed, given the last observations and, optionally, the actions in
    between.

    :param observation_dim: size of an observation
    :param action_dim: size of an action
    :param length: number of observations in its input
    :param with_actions: whether the actions in between are part of the input
    :param repeats: how the stack is padded at the beginning of an episode: True: with the first observation; False:
        with zeros
    :param hidden: units of the hidden layers
    :param activation: between layers
    :param separate: separate networks for mean and standard deviation
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
        """Return mean and ``log σ``, ``(..., action_dim)`` each, of an output of :meth:`stack` or :meth:`join`."""
        if self.deviation is not None:
            mean, log_std = self.mean(stacked), self.deviation(stacked)
        else:
            mean, log_std = self.mean(stacked).chunk(2, dim=-1)
        return mean, log_std.clamp(*LOG_STD_RANGE)

    def join(self, observations: th.Tensor, actions: th.Tensor) -> th.Tensor:
        """Build the input from observations and actions.

        :param observations: oldest first, ``(n, length, observation_dim)``
        :param actions: the ones in between, ``(n, length - 1, action_dim)``
        :return: ``(n, in_dim)``
        """
        parts = (
            [observations.flatten(1), actions.flatten(1)] if self.with_actions else [observations.flatten(1)]
        )
        return th.cat(parts, dim=-1)

    def stack(self, sequences: SequenceBatch) -> th.Tensor:
        """Return the stack at every observation of some sequences, ``(T + 1, n, in_dim)``.

        Correct after the burn-in, if that has ``length - 1`` steps or the sequence begins with its episode.

        :param sequences: with burn-in
        """
        observations, actions = sequences.observations, sequences.previous_actions
        first = observations[:1].expand(self.length - 1, -1, -1)
        padded = th.cat([first if self.repeats else th.zeros_like(first), observations])
        parts = [padded.unfold(0, self.length, 1).transpose(2, 3).flatten(2)]
        if self.with_actions and self.length > 1:
            padded = F.pad(actions, (0, 0, 0, 0, self.length - 2, 0))
            parts.append(padded.unfold(0, self.length - 1, 1).transpose(2, 3).flatten(2))
        return th.cat(parts, dim=-1)


class LatentCritic(nn.Module):
    """Two action values of a latent state and, optionally, its state value.

    :param latent_dim: size of the part of the latent state that it reads
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
    """The actor of SAC-LSTM over whole sequences, burn-in included."""

    def over(self, sequences: SequenceBatch) -> Heads:
        """Return mean and ``log σ`` at every observation, ``(T + 1, n, action_dim)`` each.

        :param sequences: with burn-in
        """
        mean, log_std, _ = self(sequences.observations, sequences.previous_actions)
        return mean, log_std


def at(values: th.Tensor, steps: th.Tensor) -> th.Tensor:
    """Return the values at some steps, which differ from sequence to sequence.

    :param values: ``(T, n, ...)``
    :param steps: int64, ``(K, n)``, each below T
    :return: ``(K, n, ...)``
    """
    columns: Any = th.arange(steps.shape[1], device=steps.device)
    found: th.Tensor = values[steps, columns]
    return found
