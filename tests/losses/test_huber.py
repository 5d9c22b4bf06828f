"""The Huber loss against torch's own."""

from __future__ import annotations

import pytest
import torch as th
from torch.nn import functional as F

from rlexp.losses.huber import huber


@pytest.mark.parametrize("clip", [0.3, 1.0, 4.0, None])
def test_values_and_gradients(clip: float | None) -> None:
    errors = th.linspace(-5, 5, 21, dtype=th.float64).requires_grad_()
    weights = th.linspace(0.1, 1, 21, dtype=th.float64)
    expected = F.huber_loss(errors, th.zeros_like(errors), reduction="none", delta=clip or 100.0)
    th.testing.assert_close(huber(errors, clip), expected)
    th.testing.assert_close(huber(errors, clip, weights), weights * expected)
    (gradient,) = th.autograd.grad(huber(errors, clip, weights).sum(), errors)
    limit = clip or 100.0
    th.testing.assert_close(gradient, weights * errors.detach().clamp(-limit, limit))
