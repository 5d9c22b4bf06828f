"""An actor-critic whose distribution and values are each computed in one place."""

from __future__ import annotations

import torch as th
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.type_aliases import PyTorchObs


class DistributionPolicy(ActorCriticPolicy):
    """Stable-Baselines3's actor-critic, acting and evaluating through ``get_distribution`` and ``predict_values``.

    A subclass that changes one of the two changes acting and learning alike.
    """

    def forward(self, obs: th.Tensor, deterministic: bool = False) -> tuple[th.Tensor, th.Tensor, th.Tensor]:
        """Return actions, values and the log-probabilities of the actions, ``(n, ...)``, ``(n, 1)`` and ``(n,)``.

        :param obs: ``(n, ...)``
        :param deterministic: the mode of the distribution instead of a sample
        """
        distribution = self.get_distribution(obs)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, self.predict_values(obs), distribution.log_prob(actions)

    def evaluate_actions(
        self, obs: PyTorchObs, actions: th.Tensor
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor | None]:
        """Return values ``(n, 1)``, log-probabilities ``(n,)`` and entropy ``(n,)`` under the present policy.

        :param obs: ``(n, ...)``
        :param actions: ``(n, ...)``
        """
        distribution = self.get_distribution(obs)
        return self.predict_values(obs), distribution.log_prob(actions), distribution.entropy()
