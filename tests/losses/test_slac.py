"""SLAC's objective against torch's own distributions, and the bound against the exact likelihood of a linear model."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from torch import nn

from rlexp.losses.distributions import gaussian_kl, gaussian_log_prob
from rlexp.losses.slac import elbo_loss, han_loss
from rlexp.networks.latent import LatentModel
from tests.losses.kalman import LinearGaussian, log_likelihood


def test_losses_by_hand() -> None:
    observation_mask = th.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    step_mask = th.tensor([[1.0, 1.0], [1.0, 0.0]])
    observations = th.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 100.0]])
    rewards = th.tensor([[0.5, 0.25], [1.0, 100.0]])
    divergence = th.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 100.0]])
    first = 1 + 3 + 5 + 0.5 + 1 - 0.9
    second = 2 + 4 + 0.25 - 0.6
    assert float(elbo_loss(observations, rewards, divergence, observation_mask, step_mask)) == pytest.approx(
        -(first + second) / 2
    )
    likelihood = (1 + 2 + 3 + 4 + 5 + 0.5 + 0.25 + 1) / (2 + 1)
    found = float(
        han_loss(
            observations, rewards, divergence, observation_mask, step_mask, observation_dim=2, latent_dim=4
        )
    )
    assert found == pytest.approx((1.5 / 4 - likelihood) / 6)


th.set_num_threads(1)  # more only wait for one another on matrices this small


def bound(model: LatentModel, observations: th.Tensor, actions: th.Tensor, rewards: th.Tensor) -> th.Tensor:
    """Return the bound as SLAC computes it, whole windows only."""
    inferred = model.infer(observations, actions)
    divergence = gaussian_kl(*inferred.posterior, *inferred.prior)
    observed = gaussian_log_prob(observations, *model.observation(inferred.z))
    rewarded = gaussian_log_prob(rewards[..., None], *model.decode_rewards(inferred.z, actions))
    return -elbo_loss(observed, rewarded, divergence, th.ones_like(observed), th.ones_like(rewarded))


def linear_model(seed: int) -> LatentModel:
    """A latent model every network of which is linear, its deviations constant; inferred as they come."""
    th.manual_seed(seed)
    model = LatentModel(2, 1, z1_dim=2, z2_dim=2, hidden=[], activation=nn.Tanh).double()
    with th.no_grad():
        for net in (model.first_z2, model.next_z2, model.next_z1, model.observation, model.reward):
            half = len(net.first.weight) // 2
            net.first.weight[half:].zero_()  # the deviation's head
    return model


def test_the_bound_is_below_the_exact_likelihood_and_rises_towards_it() -> None:
    model = linear_model(seed=3)
    system = LinearGaussian.of(model)
    generator = np.random.default_rng(0)
    observations, actions, rewards = system.draw(steps=5, n=64, generator=generator)
    exact = np.mean(
        [log_likelihood(system, observations[:, k], actions[:, k], rewards[:, k]) for k in range(64)]
    )
    batch = [th.from_numpy(part) for part in (observations, actions, rewards)]

    def gap(draws: int = 40) -> tuple[float, float]:
        with th.no_grad():
            bounds = np.array([float(bound(model, *batch)) for _ in range(draws)])
        return float(exact - bounds.mean()), float(bounds.std() / np.sqrt(draws))

    before, error = gap()
    assert before > 4 * error, "with inferred that have learned nothing"
    trained = [*model.first_belief.parameters(), *model.belief.parameters()]
    optimizer = th.optim.Adam(trained, lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        (-bound(model, *batch)).backward()
        optimizer.step()
    after, error = gap()
    assert -3 * error < after < 0.5 * before


def test_the_filter_is_the_joint_density() -> None:
    system = LinearGaussian.of(linear_model(seed=1))
    generator = np.random.default_rng(1)
    observations, actions, rewards = system.draw(steps=3, n=4, generator=generator)
    for k in range(4):
        one = (observations[:, k], actions[:, k], rewards[:, k])
        assert log_likelihood(system, *one) == pytest.approx(system.joint_log_density(*one), rel=1e-9)
