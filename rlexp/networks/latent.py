"""A two-level latent variable model: z¹ and z² explain the observations, z² carries the history."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import torch as th
from torch import nn
from torch.nn import functional as F

Gaussian = tuple[th.Tensor, th.Tensor]  # mean and standard deviation


class GaussianNet(nn.Module):
    """A diagonal Gaussian, mean and standard deviation both learned.

    :param in_dim: size of the input
    :param out_dim: dimensions of the Gaussian
    :param hidden: units of the hidden layers
    :param activation: between layers
    :param separate: a network each for mean and deviation; False: one with two heads
    :param least_std: added to every standard deviation
    :param fixed_std: the standard deviation; None: learned
    """

    def __init__(
        self,
        in_dim: int,
        out_dim: int,
        hidden: list[int],
        activation: type[nn.Module],
        separate: bool = False,
        least_std: float = 1e-5,
        fixed_std: float | None = None,
    ) -> None:
        super().__init__()
        self.least_std = least_std
        self.fixed_std = fixed_std
        self.separate = separate and fixed_std is None
        out = out_dim if self.separate or fixed_std is not None else 2 * out_dim
        sizes = [*hidden, out]
        # The first layers of two networks are one layer of twice the width.
        self.first = nn.Linear(in_dim, sizes[0] * (1 + self.separate))
        self.mean = _layers(sizes, activation)
        if self.separate:
            self.deviation = _layers(sizes, activation)

    def forward(self, inputs: th.Tensor) -> Gaussian:
        """Return mean and standard deviation, ``(..., out_dim)`` each, of inputs ``(..., in_dim)``."""
        return self.tail(self.first(inputs))

    def tail(self, begun: th.Tensor) -> Gaussian:
        """Return the same from the first layer's output: the tail of the network.

        :param begun: output of the first layer, ``(..., units)``
        """
        if self.fixed_std is not None:
            mean = self.mean(begun)
            return mean, th.full_like(mean, self.fixed_std)
        if self.separate:
            left, right = begun.chunk(2, dim=-1)
            mean, raw = self.mean(left), self.deviation(right)
        else:
            mean, raw = self.mean(begun).chunk(2, dim=-1)
        return mean, F.softplus(raw) + self.least_std

    def split(self, context: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Split the first layer into the part of the first inputs, computed here, and the weights of the others.

        :param context: the first entries of the inputs, ``(..., context_dim)``
        :return: their part of the first layer's output, ``(..., units)``, and the weights of the others, ``(in_dim -
            context_dim, units)``
        """
        weight, n = self.first.weight, context.shape[-1]
        return F.linear(context, weight[:, :n], self.first.bias), weight[:, n:].t()


def _layers(sizes: list[int], activation: type[nn.Module]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layers += [activation(), nn.Linear(n_in, n_out)]
    return nn.Sequential(*layers)


class LatentPosterior(NamedTuple):
    """A sample of the posterior over latent sequences, for ``n`` sequences of ``T`` steps."""

    z: th.Tensor  # (T + 1, n, z1_dim + z2_dim): z¹ sampled from its posterior, then z²
    z2: th.Tensor  # (T + 1, n, z2_dim)
    posterior: Gaussian  # of z¹, (T + 1, n, z1_dim) each
    prior: Gaussian  # of z¹ given the previous step, (T + 1, n, z1_dim) each


class LatentModel(nn.Module):
    """Lee et al. 2020 for vectors, as laid out by Biemann et al. 2021.

    ::

        z¹_1 ~ N(0, 1)                          z²_1 ~ p(. | z¹_1)
        z¹_{t+1} ~ p(. | z²_t, a_t)             z²_{t+1} ~ p(. | z¹_{t+1}, z²_t, a_t)
        o_t ~ p(. | z¹_t, z²_t)                 r_t ~ p(. | z_t, a_t, z_{t+1})

    The posterior is ``q(z¹_1 | o_1)``, ``q(z¹_{t+1} | o_{t+1}, a_t, z²_t)`` and, for z², the generative networks
    themselves.

    :param observation_dim: size of an observation
    :param action_dim: size of an action
    :param z1_dim: dimensions of z¹
    :param z2_dim: dimensions of z²
    :param hidden: units of the hidden layers of every network
    :param activation: between layers
    :param separate: separate networks for standard deviations
    :param observation_std: the standard deviation of decoded observations; None: learned
    """

    def __init__(
        self,
        observation_dim: int,
        action_dim: int,
        z1_dim: int,
        z2_dim: int,
        hidden: list[int],
        activation: type[nn.Module],
        separate: bool = False,
        observation_std: float | None = None,
    ) -> None:
        super().__init__()
        self.z1_dim, self.z2_dim = z1_dim, z2_dim
        # Normalisation of the inputs: learned deviations start near 1 and could not reach much larger ones.
        for name, size in (("observation", observation_dim), ("reward", 1)):
            self.register_buffer(f"{name}_center", th.zeros(size))
            self.register_buffer(f"{name}_scale", th.ones(size))
        z_dim = z1_dim + z2_dim

        def net(in_dim: int, out_dim: int, least: float = 1e-5, fixed: float | None = None) -> GaussianNet:
            return GaussianNet(in_dim, out_dim, hidden, activation, separate, least, fixed)

        # Posterior networks, under the names that checkpoints and archives have.
        self.first_belief = net(observation_dim, z1_dim)
        self.belief = net(observation_dim + z2_dim + action_dim, z1_dim)
        self.first_z2 = net(z1_dim, z2_dim)
        self.next_z2 = net(z1_dim + z2_dim + action_dim, z2_dim)
        self.next_z1 = net(z2_dim + action_dim, z1_dim)
        # Likelihoods of exactly predictable outputs are unbounded: hence the floor of the deviation, as in Han et
        # al.'s code.
        self.observation = net(z_dim, observation_dim, 0.01, observation_std)
        self.reward = net(2 * z_dim + action_dim, 1, 0.01)

    observation_center: th.Tensor
    observation_scale: th.Tensor
    reward_center: th.Tensor
    reward_scale: th.Tensor

    def fit_normalizer(self, observations: th.Tensor, rewards: th.Tensor) -> None:
        """Set the normalisation to mean and standard deviation of some data.

        :param observations: ``(N, observation_dim)``
        :param rewards: ``(N, 1)``
        """
        for name, values in (("observation", observations), ("reward", rewards)):
            std = values.std(dim=0, correction=0)
            getattr(self, f"{name}_center").copy_(values.mean(dim=0))
            getattr(self, f"{name}_scale").copy_(th.where(std > 1e-6, std, th.ones_like(std)))

    def normalize(self, observations: th.Tensor, rewards: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return normalised observations and rewards.

        :param observations: ``(..., observation_dim)``
        :param rewards: ``(..., 1)``
        """
        return (
            (observations - self.observation_center) / self.observation_scale,
            (rewards - self.reward_center) / self.reward_scale,
        )

    def infer(self, observations: th.Tensor, actions: th.Tensor) -> LatentPosterior:
        """Sample latent sequences from the posterior, step by step.

        :param observations: ``o_1 .. o_{T+1}``, ``(T + 1, n, observation_dim)``
        :param actions: ``a_1 .. a_T``, ``(T, n, action_dim)``
        """
        steps, n = actions.shape[:2]
        shape = (steps + 1, n, self.z1_dim + self.z2_dim)
        noise = th.randn(shape, device=actions.device, dtype=actions.dtype)
        noise1, noise2 = (part.unbind() for part in th.split(noise, [self.z1_dim, self.z2_dim], dim=-1))
        # The part of observations and actions does not depend on the samples: once for all steps.
        encoded_obs, weight1 = self.belief.split(th.cat([observations[1:], actions], dim=-1))
        encoded_actions, weight2 = self.next_z2.split(actions)
        mean, std = self.first_belief(observations[0])
        z1 = th.addcmul(mean, std, noise1[0])
        z2 = _sample(self.first_z2(z1), noise2[0])
        all_z, all_z2, means, stds = [th.cat([z1, z2], dim=-1)], [z2], [mean], [std]
        for t, (begun1, begun2) in enumerate(
            zip(encoded_obs.unbind(), encoded_actions.unbind(), strict=True), start=1
        ):
            mean, std = self.belief.tail(th.addmm(begun1, z2, weight1))
            before = th.cat([th.addcmul(mean, std, noise1[t]), z2], dim=-1)
            z2 = _sample(self.next_z2.tail(th.addmm(begun2, before, weight2)), noise2[t])
            all_z.append(before)
            all_z2.append(z2)
            means.append(mean)
            stds.append(std)
        z1_samples = th.stack(all_z)[..., : self.z1_dim]
        z2_samples = th.stack(all_z2)
        later_mean, later_std = self.next_z1(th.cat([z2_samples[:-1], actions], dim=-1))
        first = th.zeros(1, n, self.z1_dim, device=actions.device, dtype=actions.dtype)
        prior = (th.cat([first, later_mean]), th.cat([first + 1, later_std]))
        z = th.cat([z1_samples, z2_samples], dim=-1)
        return LatentPosterior(z, z2_samples, (th.stack(means), th.stack(stds)), prior)

    def decode_rewards(self, z: th.Tensor, actions: th.Tensor) -> Gaussian:
        """Return the rewards' Gaussians, mean and standard deviation ``(T, n, 1)`` each.

        :param z: latent states, ``(T + 1, n, z1_dim + z2_dim)``
        :param actions: ``(T, n, action_dim)``
        """
        found: Gaussian = self.reward(th.cat([z[:-1], actions, z[1:]], dim=-1))
        return found


def _sample(gaussian: Gaussian, noise: th.Tensor) -> th.Tensor:
    return th.addcmul(gaussian[0], gaussian[1], noise)
