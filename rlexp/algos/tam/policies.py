"""A policy that blocks the actions its user model finds useless."""

from __future__ import annotations

from typing import Any

import torch as th
from stable_baselines3.common.distributions import Distribution
from stable_baselines3.common.type_aliases import PyTorchObs
from torch import nn

from rlexp.losses.tam import useful_actions
from rlexp.networks.policies import DistributionPolicy

BLOCKED = -1e8
"""Logit of a blocked action: its probability is 0, its log-probability finite."""


class UserModel(nn.Module):
    """Predicts, for every action, whether it ends the episode, its reward, and whether it changes the state.

    :param n_inputs: length of an observation vector
    :param n_actions: number of actions
    :param hidden: units of its one hidden layer
    """

    def __init__(self, n_inputs: int, n_actions: int, hidden: int) -> None:
        super().__init__()
        self.n_actions = n_actions
        self.layers = nn.Sequential(nn.Linear(n_inputs, hidden), nn.ReLU(), nn.Linear(hidden, n_actions * 3))

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Return ``(batch, n_actions, 3)`` from ``(batch, n_inputs)``."""
        predictions: th.Tensor = self.layers(observations).view(-1, self.n_actions, 3)
        return predictions


class MaskedPolicy(DistributionPolicy):
    """Stable-Baselines3's actor-critic with a user model in front of its actions.

    The mask is a function of the observation, so it is the same when an action is taken and when its
    probability is evaluated again in the update, as long as the user model learns between updates only.

    :param user_model_hidden: hidden units of the user model
    :param termination_threshold: see :func:`~rlexp.losses.tam.useful_actions`
    :param similarity_threshold: see :func:`~rlexp.losses.tam.useful_actions`
    """

    def __init__(
        self,
        *args: Any,
        user_model_hidden: int = 64,
        termination_threshold: float = 0.5,
        similarity_threshold: float = 0.5,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.termination_threshold = termination_threshold
        self.similarity_threshold = similarity_threshold
        # A buffer, so that it is saved with the weights. The algorithm sets it once the model has learnt.
        self.masking: th.Tensor
        self.register_buffer("masking", th.tensor(False))
        # After super().__init__, so that the policy's optimizer does not take its parameters.
        n_actions = int(self.action_space.n)  # type: ignore[attr-defined]
        self.user_model = UserModel(self.features_dim, n_actions, user_model_hidden)

    def get_distribution(self, obs: PyTorchObs) -> Distribution:
        """Return the action distribution, useless actions blocked."""
        features = self.extract_features(obs, self.pi_features_extractor)
        logits = self.action_net(self.mlp_extractor.forward_actor(features))  # type: ignore[arg-type]
        if self.masking:
            with th.no_grad():
                predictions = self.user_model(features)
            useful = useful_actions(predictions, self.termination_threshold, self.similarity_threshold)
            logits = logits.masked_fill(~useful, BLOCKED)
        return self.action_dist.proba_distribution(action_logits=logits)
