"""Behaviour cloning: the demonstrated action should be the likeliest."""

from __future__ import annotations

import torch as th
from torch.nn import functional as F


def cloning_loss(logits: th.Tensor, actions: th.Tensor, valid: th.Tensor) -> th.Tensor:
    """Mean of ``-log π(a_E | s)`` over the steps that happened (Pomerleau 1989).

    :param logits: ``(T, B, n_actions)``
    :param actions: the demonstrated ones, int64, ``(T, B)``; anything in padding
    :param valid: 1 for steps that happened, 0 for padding, ``(T, B)``
    """
    terms = F.cross_entropy(logits.flatten(0, 1), actions.flatten(), reduction="none")
    return (terms * valid.flatten()).sum() / valid.sum().clamp(min=1.0)


def agreement(logits: th.Tensor, actions: th.Tensor, valid: th.Tensor) -> th.Tensor:
    """Share of the steps that happened at which the likeliest action is the demonstrated one; shapes as above."""
    return ((logits.argmax(-1) == actions) * valid).sum() / valid.sum().clamp(min=1.0)
