"""Losses on sequences against numbers worked out by hand, brute force and a plain loop over steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch as th
from torch import nn
from torch.nn import functional as F

from rlexp.losses.huber import huber
from rlexp.losses.sequences import (
    greedy_values,
    l2_penalty,
    large_margin,
    n_step_targets,
    rescale,
    sequence_priorities,
    step_mean,
    unrescale,
    valid_steps,
)


def h(x: float, epsilon: float) -> float:
    return math.copysign(math.sqrt(abs(x) + 1) - 1, x) + epsilon * x


def inverse_h(y: float, epsilon: float) -> float:
    """As the paper prints it, in double precision; the root's -1 needs the digits."""
    inner = (math.sqrt(1 + 4 * epsilon * (abs(y) + 1 + epsilon)) - 1) / (2 * epsilon)
    return math.copysign(inner**2 - 1, y)


@pytest.mark.parametrize("epsilon", [1e-3, 1e-2])
def test_rescaling_by_hand(epsilon: float) -> None:
    numbers = [-5000.0, -3.0, -0.25, 0.0, 1e-3, 3.0, 8.0, 99.0, 1e5]
    found = rescale(th.tensor(numbers, dtype=th.float64), epsilon)
    assert found.tolist() == pytest.approx([h(x, epsilon) for x in numbers], abs=1e-12)
    assert rescale(th.tensor(3.0), epsilon).item() == pytest.approx(1 + 3 * epsilon)
    back = unrescale(th.tensor(numbers, dtype=th.float64), epsilon)
    assert back.tolist() == pytest.approx([inverse_h(y, epsilon) for y in numbers], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 1e-2])
@pytest.mark.parametrize("dtype", [th.float32, th.float64])
def test_the_inverse_inverts(epsilon: float, dtype: th.dtype) -> None:
    grid = th.logspace(-4, 5, 2000, dtype=dtype)
    numbers = th.cat([-grid, th.zeros(1, dtype=dtype), grid])
    assert th.allclose(unrescale(rescale(numbers, epsilon), epsilon), numbers, rtol=1e-6, atol=1e-9)
    assert th.allclose(rescale(unrescale(numbers, epsilon), epsilon), numbers, rtol=1e-6, atol=1e-9)


def test_targets_by_hand() -> None:
    """R13: a time limit is worth the value behind it, a termination nothing; R4: padding counts for nothing."""
    rewards = th.tensor([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [4.0, 0.0, 0.0]])
    values = th.tensor([[10.0] * 3, [20.0] * 3, [30.0] * 3, [40.0] * 3])
    lengths, terminated = th.tensor([3, 2, 2]), th.tensor([False, True, False])
    found = n_step_targets(rewards, values, lengths, terminated, 2, 0.5, None)
    assert found[:, 0].tolist() == [1 + 0.5 * 2 + 0.25 * 30, 2 + 0.5 * 4 + 0.25 * 40, 4 + 0.5 * 40]
    assert found[:2, 1].tolist() == [1 + 0.5 * 2, 2]
    assert found[:2, 2].tolist() == [1 + 0.5 * 2 + 0.25 * 30, 2 + 0.5 * 30]
    one_step = n_step_targets(rewards, values, lengths, terminated, 1, 0.5, None)
    assert one_step[:, 0].tolist() == [1 + 0.5 * 20, 2 + 0.5 * 30, 4 + 0.5 * 40]
    assert one_step[1, 1].item() == 2


@pytest.mark.parametrize("n_steps", [1, 3, 5, 50])
@pytest.mark.parametrize("epsilon", [None, 1e-3])
def test_targets_by_brute_force(n_steps: int, epsilon: float | None) -> None:
    generator = np.random.default_rng(n_steps)
    horizon, batch, gamma = 9, 40, 0.9
    lengths = generator.integers(1, horizon + 1, batch)
    terminated = generator.random(batch) < 0.5
    rewards = generator.normal(size=(horizon, batch)) * (np.arange(horizon)[:, None] < lengths)
    values = generator.normal(size=(horizon + 1, batch)) * 3
    found = n_step_targets(
        th.tensor(rewards),
        th.tensor(values),
        th.tensor(lengths),
        th.tensor(terminated),
        n_steps,
        gamma,
        epsilon,
    )
    for b in range(batch):
        for t in range(lengths[b]):
            total, discount, k = 0.0, 1.0, t
            while k < lengths[b] and k < t + n_steps:
                total += discount * rewards[k, b]
                discount *= gamma
                k += 1
            if not (terminated[b] and k == lengths[b]):
                value = values[k, b]
                total += discount * (value if epsilon is None else inverse_h(value, epsilon))
            expected = total if epsilon is None else h(total, epsilon)
            assert found[t, b].item() == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_double_q_chooses_and_values() -> None:
    target, online = th.tensor([[1.0, 5.0, 3.0]]), th.tensor([[9.0, 0.0, 2.0]])
    assert greedy_values(target).item() == 5 and greedy_values(target, online).item() == 1


def test_the_margin_by_hand() -> None:
    values = th.tensor([[1.0, 2.0, 1.5], [3.0, 2.0, 1.0], [2.0, 1.5, 0.0]])
    actions = th.tensor([0, 0, 0])
    assert large_margin(values, actions, 0.8).tolist() == pytest.approx([1.8, 0.0, 0.3])
    generator = th.Generator().manual_seed(0)
    many = th.randn(4, 7, 5, generator=generator)
    chosen = th.randint(5, (4, 7), generator=generator)
    found = large_margin(many, chosen, 0.8)
    for t in range(4):
        for b in range(7):
            row, expert = many[t, b].tolist(), int(chosen[t, b])
            best = max(value + 0.8 * (action != expert) for action, value in enumerate(row))
            assert found[t, b].item() == pytest.approx(best - row[expert], abs=1e-6)
    assert (found >= 0).all()


def test_l2_is_a_term_of_the_loss() -> None:
    """R7: the sum of squares of weights and biases, with gradient 2 λ θ; not a decay beside the loss."""
    layer = nn.Linear(3, 2)
    penalty = l2_penalty(layer.parameters())
    assert penalty.item() == pytest.approx(sum(p.square().sum().item() for p in layer.parameters()))
    (1e-2 * penalty).backward()
    for parameter in layer.parameters():
        assert parameter.grad is not None and th.allclose(parameter.grad, 2e-2 * parameter.detach())


def test_priorities_are_of_absolute_errors() -> None:
    """R2: a TD error twice as large is twice the priority, not four times; R4: padding is not averaged over."""
    sizes = th.tensor([[1.0, 4.0], [3.0, 7.0], [100.0, 1.0]])
    valid = valid_steps(3, th.tensor([2, 3]))
    found = sequence_priorities(sizes, valid, 0.9)
    assert found.tolist() == pytest.approx([0.9 * 3 + 0.1 * 2, 0.9 * 7 + 0.1 * 4])
    th.testing.assert_close(sequence_priorities(2 * sizes, valid, 0.9), 2 * found)


@pytest.mark.parametrize("clip", [None, 0.5])
def test_padding_and_weights(clip: float | None) -> None:
    generator = th.Generator().manual_seed(1)
    errors = th.randn(4, 3, generator=generator)
    valid, weights = valid_steps(4, th.tensor([4, 1, 2])), th.tensor([1.0, 0.5, 0.1])
    loss = step_mean(huber(errors, clip), valid, weights)
    total = 0.0
    for b, length in enumerate([4, 1, 2]):
        for t in range(length):
            error = errors[t, b]
            size = (
                error.square() / 2 if clip is None else F.huber_loss(error, th.zeros(()), delta=clip)
            ).item()
            total += weights[b].item() * size
    assert loss.item() == pytest.approx(total / 7, rel=1e-5)
    errors[1:, 1] = 1e6  # whatever stands in padding
    assert step_mean(huber(errors, clip), valid, weights).item() == pytest.approx(loss.item())
