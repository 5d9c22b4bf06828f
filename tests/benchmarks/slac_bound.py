"""How close SLAC's bound comes to the exact likelihood of a linear-Gaussian system.

The whole model, with networks that are not linear and deviations that are learned, is trained on what such a system
shows and measured on what it has not seen; a Kalman filter says the exact likelihood. Half a minute of one core:
``PYTHONPATH=. python tests/benchmarks/slac_bound.py``.
"""

from __future__ import annotations

import numpy as np
import torch as th
from torch import nn

from rlexp.losses.distributions import gaussian_kl, gaussian_log_prob
from rlexp.losses.slac import elbo_loss
from rlexp.networks.latent import LatentModel
from tests.losses.kalman import LinearGaussian, log_likelihood

STEPS = 7  # eight observations


def system() -> LinearGaussian:
    """Return a swing that is pushed about; position and reward tell of one of its two coordinates, with noise.

    A reward that tells of the other one would leave a gap of its own: SLAC's inferred are never shown rewards.
    """
    A = np.array([[0.9, 0.3], [-0.3, 0.8]])
    return LinearGaussian(
        m=np.zeros(2),
        P=np.eye(2),
        A=A,
        B=np.array([[0.0], [0.5]]),
        b=np.zeros(2),
        W=0.09 * np.eye(2),
        C=np.array([[1.0, 0.0]]),
        c=np.zeros(1),
        V=np.array([[0.01]]),
        D=np.array([[0.3, 0.0, 1.0, 0.0]]),
        E=np.array([[0.0]]),
        d=np.zeros(1),
        U=np.array([[0.25]]),
    )


def bound(model: LatentModel, batch: list[th.Tensor]) -> th.Tensor:
    """Return the bound, averaged over windows."""
    observations, actions, rewards = batch
    inferred = model.infer(observations, actions)
    divergence = gaussian_kl(*inferred.posterior, *inferred.prior)
    observed = gaussian_log_prob(observations, *model.observation(inferred.z))
    rewarded = gaussian_log_prob(rewards[..., None], *model.decode_rewards(inferred.z, actions))
    return -elbo_loss(observed, rewarded, divergence, th.ones_like(observed), th.ones_like(rewarded))


def main(updates: int = 4000) -> None:
    """Train, measure, print."""
    th.set_num_threads(1)
    th.manual_seed(0)
    truth, generator = system(), np.random.default_rng(0)
    unseen = truth.draw(STEPS, 600, generator)
    exact = np.mean([log_likelihood(truth, *(part[:, k] for part in unseen)) for k in range(600)])
    measured = [th.from_numpy(part).float() for part in unseen]
    model = LatentModel(1, 1, z1_dim=4, z2_dim=8, hidden=[32], activation=nn.Tanh)
    optimizer = th.optim.Adam(model.parameters(), lr=3e-3, fused=True)
    for update in range(updates + 1):
        if update % (updates // 4) == 0:
            with th.no_grad():
                found = np.mean([float(bound(model, measured)) for _ in range(10)])
            print(
                f"update {update:5d}: bound {found:8.3f}, exact {exact:8.3f}, gap {(exact - found) / abs(exact):.1%}"
            )
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * (1 - update / (updates + 1))
        batch = [th.from_numpy(part).float() for part in truth.draw(STEPS, 64, generator)]
        optimizer.zero_grad()
        (-bound(model, batch)).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


if __name__ == "__main__":
    main()
