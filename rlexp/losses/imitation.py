"""Behaviour cloning: the expert's action should be the most likely one."""

from __future__ import annotations

import torch as th
from torch.nn import functional as F


def cloning_loss(logits: th.Tensor, actions: th.Tensor, valid: th.Tensor) -> th.Tensor:
    """Mean of ``-log π(a_E | s)`` over the valid steps (Pomerleau 1989).

    :param logits: ``(T, B, n_actions)``
    :param actions: of the expert, int64, ``(T, B)``; any value in padding
    :param valid: 1 for valid steps, 0 for padding, ``(T, B)``
    """
    terms = F.cross_entropy(logits.flatten(0, 1), actions.flatten(), reduction="none")
    return (terms * valid.flatten()).sum() / valid.sum().clamp(min=1.0)


def agreement(logits: th.Tensor, actions: th.Tensor, valid: th.Tensor) -> th.Tensor:
    """Fraction of the valid steps at which the most likely action is the expert's.

    :param logits: ``(T, B, n_actions)``
    :param actions: of the expert, int64, ``(T, B)``; any value in padding
    :param valid: 1 for valid steps, 0 for padding, ``(T, B)``
    """
    return ((logits.argmax(-1) == actions) * valid).sum() / valid.sum().clamp(min=1.0)
