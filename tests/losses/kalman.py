"""A linear-Gaussian system with rewards, and the exact likelihood of what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import multivariate_normal
from torch.nn import functional as F

from rlexp.networks.latent import GaussianNet, LatentModel

Array = npt.NDArray[np.float64]


@dataclass
class LinearGaussian:
    """``z_1 ~ N(m, P)``, ``z' = A z + B a + b + w``, ``o = C z + c + v``, ``r = D [z, a, z'] + d + u``."""

    m: Array
    P: Array
    A: Array
    B: Array
    b: Array
    W: Array
    C: Array
    c: Array
    V: Array
    D: Array  # of (z, z')
    E: Array  # of a
    d: Array
    U: Array

    @classmethod
    def of(cls, model: LatentModel) -> LinearGaussian:
        """Take the generative part of a latent model whose networks are linear, with constant deviations."""
        n1, n2 = model.z1_dim, model.z2_dim

        def parts(net: GaussianNet) -> tuple[Array, Array, Array]:
            weight, bias = net.first.weight.detach().numpy(), net.first.bias.detach()
            half = len(weight) // 2
            std = (F.softplus(bias[half:]) + net.least_std).numpy()
            return weight[:half].astype(float), bias[:half].numpy().astype(float), np.diag(std**2)

        first, shift, spread = parts(model.first_z2)
        P = np.block([[np.eye(n1), first.T], [first, first @ first.T + spread]])
        up, up_bias, up_noise = parts(model.next_z1)  # of (z2, a)
        over, over_bias, over_noise = parts(model.next_z2)  # of (a, z1', z2)
        act, fresh, old = over[:, : -n1 - n2], over[:, -n1 - n2 : -n2], over[:, -n2:]
        above, push = up[:, :n2], up[:, n2:]
        C, c, V = parts(model.observation)
        weights, d, U = parts(model.reward)
        z, acts = n1 + n2, push.shape[1]
        zeros = np.zeros((n1 + n2, n1))
        noise = np.block(
            [[up_noise, up_noise @ fresh.T], [fresh @ up_noise, fresh @ up_noise @ fresh.T + over_noise]]
        )
        return cls(
            m=np.concatenate([np.zeros(n1), shift]),
            P=P,
            A=np.hstack([zeros, np.vstack([above, fresh @ above + old])]),
            B=np.vstack([push, fresh @ push + act]),
            b=np.concatenate([up_bias, fresh @ up_bias + over_bias]),
            W=noise,
            C=C,
            c=c,
            V=V,
            D=np.hstack([weights[:, :z], weights[:, z + acts :]]),
            E=weights[:, z : z + acts],
            d=d,
            U=U,
        )

    def draw(self, steps: int, n: int, generator: np.random.Generator) -> tuple[Array, Array, Array]:
        """Return observations ``(steps + 1, n, .)``, actions ``(steps, n, .)`` and rewards ``(steps, n)``."""
        actions = generator.uniform(-1, 1, (steps, n, self.B.shape[1]))

        def noise(covariance: Array) -> Array:
            return generator.multivariate_normal(np.zeros(len(covariance)), covariance, n)

        z = self.m + noise(self.P)
        seen, rewards = [z @ self.C.T + self.c + noise(self.V)], []
        for t in range(steps):
            after = z @ self.A.T + actions[t] @ self.B.T + self.b + noise(self.W)
            both = np.hstack([z, after])
            rewards.append((both @ self.D.T + actions[t] @ self.E.T + self.d + noise(self.U))[:, 0])
            z = after
            seen.append(z @ self.C.T + self.c + noise(self.V))
        return np.stack(seen), actions, np.stack(rewards)

    def joint_log_density(self, observations: Array, actions: Array, rewards: Array) -> float:
        """Return the density of everything at once, as one large Gaussian."""
        steps, n = len(actions), len(self.m)
        # z_t = means[t] + maps[t] @ (z_1's deviation, w_1 .. w_steps)
        means, maps = [self.m], [np.hstack([np.eye(n), np.zeros((n, n * steps))])]
        for t in range(steps):
            means.append(self.A @ means[t] + self.B @ actions[t] + self.b)
            grown = self.A @ maps[t]
            grown[:, n * (t + 1) : n * (t + 2)] += np.eye(n)
            maps.append(grown)
        covariance = np.kron(np.eye(steps + 1), self.W)
        covariance[:n, :n] = self.P
        mean: list[Any] = [self.C @ z + self.c for z in means]
        rows: list[Any] = [self.C @ part for part in maps]
        own: list[Any] = [self.V] * (steps + 1)
        for t in range(steps):
            mean.append(self.D @ np.concatenate(means[t : t + 2]) + self.E @ actions[t] + self.d)
            rows.append(self.D @ np.vstack(maps[t : t + 2]))
            own.append(self.U)
        everything = np.vstack(rows)
        total = everything @ covariance @ everything.T
        place = 0
        for part in own:
            total[place : place + len(part), place : place + len(part)] += part
            place += len(part)
        seen = np.concatenate([*observations, rewards])
        return float(multivariate_normal(np.concatenate(mean), total).logpdf(seen))


def log_likelihood(system: LinearGaussian, observations: Array, actions: Array, rewards: Array) -> float:
    """Return ``log p(o_1 .. o_{T+1}, r_1 .. r_T | a)`` by a Kalman filter over (z_t, z_{t+1}).

    :param observations: ``(T + 1, .)``
    :param actions: ``(T, .)``
    :param rewards: ``(T,)``
    """
    total = 0.0

    def see(mean: Array, P: Array, H: Array, noise: Array, value: Array) -> tuple[Array, Array]:
        nonlocal total
        S = H @ P @ H.T + noise
        total += float(multivariate_normal(H @ mean, S).logpdf(value))
        gain = np.linalg.solve(S, H @ P).T
        return mean + gain @ (value - H @ mean), P - gain @ S @ gain.T

    mean, P = see(system.m, system.P, system.C, system.V, observations[0] - system.c)
    n = len(mean)
    for t in range(len(actions)):
        A = system.A
        after = A @ mean + system.B @ actions[t] + system.b
        mean = np.concatenate([mean, after])
        P = np.block([[P, P @ A.T], [A @ P, A @ P @ A.T + system.W]])
        mean, P = see(mean, P, system.D, system.U, rewards[t] - system.E @ actions[t] - system.d)
        H = np.hstack([np.zeros_like(system.C), system.C])
        mean, P = see(mean, P, H, system.V, observations[t + 1] - system.c)
        mean, P = mean[n:], P[n:, n:]
    return total
