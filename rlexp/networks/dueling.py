"""The dueling head (Wang et al. 2016)."""

from __future__ import annotations

import torch as th
from stable_baselines3.common.torch_layers import create_mlp
from torch import nn


class DuelingHead(nn.Module):
    """``Q(s, a) = V(s) + A(s, a) - mean A(s, .)``, eq. 9; each stream has its own hidden layers.

    :param features_dim: size of the input
    :param n_actions: number of actions
    :param net_arch: hidden units of each stream
    :param activation_fn: between layers
    """

    def __init__(
        self, features_dim: int, n_actions: int, net_arch: list[int], activation_fn: type[nn.Module]
    ) -> None:
        super().__init__()
        self.value = nn.Sequential(*create_mlp(features_dim, 1, net_arch, activation_fn))
        self.advantage = nn.Sequential(*create_mlp(features_dim, n_actions, net_arch, activation_fn))

    def forward(self, features: th.Tensor) -> th.Tensor:
        """Return action values, ``(n, n_actions)``, of features, ``(n, features_dim)``."""
        advantage: th.Tensor = self.advantage(features)
        value: th.Tensor = self.value(features)
        return value + advantage - advantage.mean(dim=1, keepdim=True)
