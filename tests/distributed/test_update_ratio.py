"""Updates and steps keep together, whichever side is the faster one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlexp.distributed.update_ratio import UpdateRatioLimiter


def test_updates_follow_steps_by_the_ratio() -> None:
    limiter = UpdateRatioLimiter(0.125, learning_starts=1000, slack=80)
    assert limiter.pending_updates(1000, 0) == 0 and limiter.pending_updates(1007, 0) == 0
    assert limiter.pending_updates(1008, 0) == 1 and limiter.pending_updates(1080, 4) == 6
    assert limiter.pending_updates(1080, 12) == 0, "ahead of the steps there is nothing to do"


def test_steps_wait_for_updates_beyond_the_slack() -> None:
    limiter = UpdateRatioLimiter(0.125, learning_starts=1000, slack=80)
    assert (
        limiter.allowed_steps(0, 0) == 1088
        and limiter.allowed_steps(1088, 0) == 0
        and limiter.allowed_steps(1088, 5) == 40
    )


def test_nobody_waits_without_a_ratio() -> None:
    limiter = UpdateRatioLimiter(None, learning_starts=10, slack=5)
    assert (
        limiter.pending_updates(10, 0) == 0
        and limiter.pending_updates(11, 1000) == math.inf
        and limiter.allowed_steps(10**9, 0) == math.inf
    )


def test_what_was_owed_can_be_forgotten() -> None:
    limiter = UpdateRatioLimiter(0.5, learning_starts=0, slack=5)
    assert limiter.pending_updates(100, 10) == 40
    limiter.reset(120, 10)
    assert (
        limiter.pending_updates(120, 10) == 0
        and limiter.pending_updates(124, 10) == 2
        and limiter.allowed_steps(124, 12) == 7
    )


@pytest.mark.parametrize("ratio", [0.01, 1 / 3, 1.0, 7.0])
@pytest.mark.parametrize("learner_speed", [0.2, 5.0])
def test_the_ratio_holds_with_either_side_faster(ratio: float, learner_speed: float) -> None:
    random = np.random.default_rng(0)
    limiter = UpdateRatioLimiter(ratio, learning_starts=200, slack=40)
    steps = updates = 0
    for _ in range(5000):
        if random.random() < 0.5 and limiter.allowed_steps(steps, updates) > 0:
            steps += 20
        could = int(random.random() * 2 * learner_speed * 20 * ratio + random.random())
        updates += int(min(could, limiter.pending_updates(steps, updates)))
    assert steps > 1000
    # Never ahead of the steps; behind by no more than the slack, one result and two updates.
    assert 0 <= (steps - 200) * ratio - updates <= (40 + 20) * ratio + 2


def test_a_ratio_must_be_positive() -> None:
    with pytest.raises(ValueError, match="ratio: 0 given"):
        UpdateRatioLimiter(0, 0, 0)
