"""Loop advantages against numbers worked out by hand and a literal transcription of the equations."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import RolloutBuffer

from rlexp.losses.lcpo import clip_advantages, clip_thresholds, loop_advantages, scale_advantages
from rlexp.losses.loops import OUTSIDE

O = OUTSIDE  # noqa: E741


def by_the_book(
    rewards: list[float], values: list[float], after_loop: list[int], failed: bool, gamma: float, lam: float
) -> tuple[list[float], list[float]]:
    """Every advantage as an explicit sum of (γλ)^n δ over the clean trajectory, without recursion."""
    steps = len(rewards)
    clean = [i for i in range(steps) if after_loop[i] == O and not (failed and i == steps - 1)]
    end = steps - 1 if failed else steps  # the state in which the clean trajectory ends
    following = dict(zip(clean, [*clean[1:], end], strict=False))  # none when all is loop
    delta = {i: rewards[i] + gamma * values[following[i]] - values[i] for i in clean}
    gae = {
        i: sum((gamma * lam) ** n * delta[j] for n, j in enumerate(clean[k:])) for k, i in enumerate(clean)
    }
    advantages, targets = [], []
    for i in range(steps):
        if failed and i == steps - 1:
            advantages.append(rewards[i] - values[i])
        elif after_loop[i] == O:
            advantages.append(gae[i])
        else:
            after = next((gae[j] for j in clean if j > i), 0.0)  # A_GAE of the next clean transition
            advantages.append(rewards[i] + gamma * values[i + 1] - values[i] + gamma * lam * after)
    for i in range(steps):
        state = i
        while state < steps and after_loop[state] != O and not (failed and state == steps - 1):
            state = after_loop[state]  # eq. 10, through chained loops
        targets.append(values[steps] if state == steps else advantages[state] + values[state])
    return advantages, targets


def test_clean_success_by_hand() -> None:
    advantages, targets = loop_advantages(
        np.array([-1.0, 19.0]), np.array([5.0, 10.0, 0.0]), np.array([O, O]), gamma=0.9, gae_lambda=0.5
    )
    # A_1 = 19 - 10 = 9; A_0 = (-1 + 0.9 * 10 - 5) + 0.45 * 9 = 3 + 4.05
    np.testing.assert_allclose(advantages, [7.05, 9.0])
    np.testing.assert_allclose(targets, [12.05, 19.0])


def test_loop_by_hand() -> None:
    # States a b b c: transition 1 is a 1-hop loop.
    advantages, targets = loop_advantages(
        np.array([-1.0, -1.0, 19.0]),
        np.array([5.0, 6.0, 8.0, 0.0]),
        np.array([O, 2, O]),
        gamma=0.9,
        gae_lambda=0.5,
    )
    # A_2 = 19 - 8 = 11. LAE_1 = -1 + 0.9 * 8 - 6 + 0.45 * 11 = 0.2 + 4.95.
    # A_0 skips the loop: -1 + 0.9 * V_2 - 5 + 0.45 * A_2 = 1.2 + 4.95.
    np.testing.assert_allclose(advantages, [6.15, 5.15, 11.0])
    np.testing.assert_allclose(targets, [11.15, 19.0, 19.0])
    thresholds = clip_thresholds(np.array([-1.0, -1.0, 19.0]), np.array([5.0, 6.0, 8.0]), gamma=0.9)
    np.testing.assert_allclose(thresholds, [-1.5, -1.6, 18.2])
    clipped = clip_advantages(advantages, thresholds, np.array([False, True, False]))
    np.testing.assert_allclose(clipped, [6.15, -1.6, 18.2])


def test_termination_loop_by_hand() -> None:
    advantages, targets = loop_advantages(
        np.array([-1.0, -1.0]),
        np.array([5.0, 6.0, 0.0]),
        np.array([O, O]),
        termination_loop=True,
        gamma=0.9,
        gae_lambda=0.5,
    )
    # The clean trajectory ends in s_1: A_0 = -1 + 0.9 * 6 - 5, without A_1; the failing action pays alone.
    np.testing.assert_allclose(advantages, [-0.6, -7.0])
    np.testing.assert_allclose(targets, [4.4, -1.0])


def test_loop_before_a_termination_loop_and_loop_cut_by_the_rollout() -> None:
    _, targets = loop_advantages(
        np.full(2, -1.0), np.array([5.0, 6.0, 0.0]), np.array([1, O]), termination_loop=True
    )
    np.testing.assert_allclose(targets, [-1.0, -1.0])
    advantages, targets = loop_advantages(np.full(1, -1.0), np.array([5.0, 7.0]), np.array([1]), gamma=0.9)
    np.testing.assert_allclose((advantages[0], targets[0]), (-1 + 6.3 - 5, 7.0))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("failed", [False, True])
def test_against_the_equations(seed: int, failed: bool) -> None:
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(1, 15))
    rewards, values = rng.normal(size=steps), rng.normal(size=steps + 1)
    after_loop = np.full(steps, O)
    start = 0
    while start < steps:
        length = int(rng.integers(0, 4))
        end = min(start + length, steps - 1 if failed else steps)
        after_loop[start:end] = end
        start = max(end, start + 1)
    found = loop_advantages(rewards, values, after_loop, termination_loop=failed, gamma=0.9, gae_lambda=0.7)
    expected = by_the_book(rewards.tolist(), values.tolist(), after_loop.tolist(), failed, 0.9, 0.7)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-12)


def test_without_loops_it_is_the_gae_of_stable_baselines3() -> None:
    rng = np.random.default_rng(0)
    buffer = RolloutBuffer(
        20, spaces.Box(-1, 1, (2,)), spaces.Discrete(2), "cpu", gae_lambda=0.95, gamma=0.99
    )
    buffer.rewards[:] = rng.normal(size=(20, 1))
    buffer.values[:] = rng.normal(size=(20, 1))
    for ended, last_value in ((False, 0.7), (True, 0.7)):
        buffer.compute_returns_and_advantage(th.tensor([last_value]), np.array([ended]))
        values = np.append(buffer.values[:, 0], 0.0 if ended else last_value)
        advantages, targets = loop_advantages(buffer.rewards[:, 0], values, np.full(20, O))
        np.testing.assert_allclose(advantages, buffer.advantages[:, 0], atol=1e-5)
        np.testing.assert_allclose(targets, buffer.returns[:, 0], atol=1e-5)


def test_clipping_switches() -> None:
    advantages, thresholds = np.array([-3.0, 2.0, -3.0, 2.0]), np.full(4, -1.0)
    in_loop = np.array([False, False, True, True])
    for gae, lae, expected in (
        (True, True, [-1, 2, -3, -1]),
        (True, False, [-1, 2, -3, 2]),
        (False, True, [-3, 2, -3, -1]),
        (False, False, [-3, 2, -3, 2]),
    ):
        np.testing.assert_allclose(clip_advantages(advantages, thresholds, in_loop, gae, lae), expected)


def test_scaling() -> None:
    advantages = np.array([1.0, 2.0, -4.0])
    np.testing.assert_allclose(scale_advantages(advantages, "rms"), advantages / np.sqrt(7), rtol=1e-6)
    standard = scale_advantages(advantages, "standard")
    np.testing.assert_allclose((standard.mean(), standard.std()), (0, 1), atol=1e-6)
    assert scale_advantages(advantages, "none") is advantages
    assert (scale_advantages(np.zeros(3), "rms") == 0).all()
    with pytest.raises(ValueError, match="rms, standard or none"):
        scale_advantages(advantages, "mean")
