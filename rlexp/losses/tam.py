"""Trainable action mask: what the user model learns and the mask that follows from it (Wu et al. 2020).

Only the idea is published (ICASSP 2020, and Wu & Rasmussen 2021, section 2.4): a model of the user predicts,
for every action, termination, reward and the similarity of the next dialogue state, and useless actions are
blocked. The losses and the thresholds are ours.
"""

from __future__ import annotations

import torch as th
from torch.nn import functional as F

TERMINATES, REWARD, SIMILAR = range(3)
"""Indices of the three predictions in the last dimension of a user model's output."""


def user_model_loss(
    predictions: th.Tensor,
    actions: th.Tensor,
    terminated: th.Tensor,
    rewards: th.Tensor,
    similar: th.Tensor,
    has_next: th.Tensor,
) -> th.Tensor:
    """Sum of the three prediction losses at the actions that were taken.

    Cross-entropy for termination, squared error for the reward, and cross-entropy for "the next state is the
    same one", the last only where there is a next state.

    :param predictions: ``(batch, n_actions, 3)``: logit of termination, reward, logit of similarity
    :param actions: ``(batch,)``, int64
    :param terminated: ``(batch,)``, 0 or 1
    :param rewards: ``(batch,)``, in the unit in which rewards are predicted
    :param similar: ``(batch,)``, 0 or 1; ignored where there is no next state
    :param has_next: ``(batch,)``, 0 or 1
    :return: scalar
    """
    taken = predictions[th.arange(len(actions)), actions]
    termination = F.binary_cross_entropy_with_logits(taken[:, TERMINATES], terminated)
    reward = F.mse_loss(taken[:, REWARD], rewards)
    similarity = F.binary_cross_entropy_with_logits(taken[:, SIMILAR], similar, reduction="none")
    return termination + reward + (similarity * has_next).sum() / has_next.sum().clamp(min=1)


def useful_actions(
    predictions: th.Tensor, termination_threshold: float, similarity_threshold: float
) -> th.Tensor:
    """Return which actions are worth trying.

    Blocks actions that probably leave the state unchanged (1-hop loops) and those that probably end the
    dialogue without a positive reward. Where that would block every action, none is blocked.

    :param predictions: ``(batch, n_actions, 3)``, as in :func:`user_model_loss`
    :param termination_threshold: probability of termination above which an action with a predicted reward of
        0 or less is blocked
    :param similarity_threshold: probability of staying in the same state above which an action is blocked
    :return: bool, ``(batch, n_actions)``
    """
    ends = predictions[..., TERMINATES].sigmoid() > termination_threshold
    loops = predictions[..., SIMILAR].sigmoid() > similarity_threshold
    useful = ~(loops | (ends & (predictions[..., REWARD] <= 0)))
    return useful | ~useful.any(dim=-1, keepdim=True)
