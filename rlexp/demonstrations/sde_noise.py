"""The noise of state-dependent exploration that a policy of Stable-Baselines3 acts with until it draws anew."""

from __future__ import annotations

from typing import Any

import torch as th
from stable_baselines3.common.distributions import StateDependentNoiseDistribution

_NAMES = ("exploration_mat", "exploration_matrices")


def capture(model: Any) -> dict[str, th.Tensor] | None:
    """Return the noise, ``(latent, actions)`` and ``(n_envs, latent, actions)``; None for other exploration.

    :param model: an algorithm, or anything else
    """
    distribution = _distribution(model)
    if distribution is None:
        return None
    return {name: getattr(distribution, name).detach().clone() for name in _NAMES}


def restore(model: Any, noise: dict[str, th.Tensor]) -> None:
    """Put back what :func:`capture` returned."""
    for name, value in noise.items():
        setattr(_distribution(model), name, value.to(model.device))


def _distribution(model: Any) -> StateDependentNoiseDistribution | None:
    if not getattr(model, "use_sde", False):
        return None
    policy = model.policy
    found = getattr(getattr(policy, "actor", None) or policy, "action_dist", None)
    return found if isinstance(found, StateDependentNoiseDistribution) else None
