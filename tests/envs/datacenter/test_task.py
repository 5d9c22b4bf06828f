"""Rewards, scalings, calendar."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlexp.envs.datacenter import task


def test_reward_by_hand() -> None:
    assert task.reward(23.5, 23.5, 86_320.0) == pytest.approx(2 - 0.8632)
    # 25 degrees: exp(-0.5 x 1.5^2) - 0.1 x 1; 21: exp(-0.5 x 2.5^2) - 0.1 x 2; 1 per 100 kW.
    by_hand = math.exp(-1.125) - 0.1 + math.exp(-3.125) - 0.2 - 1.2
    assert task.reward(25.0, 21.0, 120_000.0) == pytest.approx(by_hand)
    assert task.reward(24.0, 23.0, 0.0) == pytest.approx(2 * math.exp(-0.125)), "no slope inside of [23, 24]"


def test_the_calendar() -> None:
    assert task.MONTH_ENDS[-1] == task.STEPS_PER_YEAR == 35_040
    assert [task.month_of(step) for step in (0, 31 * 96 - 1, 31 * 96, 59 * 96, 35_039)] == [0, 0, 1, 2, 11]
    loads = [task.load_at(4 * hour) for hour in range(24)]
    assert loads == [0.5] * 6 + [0.75] * 2 + [1.0] * 10 + [0.8] * 6
    assert task.load_at(96 + 24) == 0.75, "the same on the next day"


def test_scalings() -> None:
    seen = np.array([15.0, 23.5, 50.0, 75e3, 10e3])
    found = {}
    for name, (low, high) in task.SCALINGS.items():
        found[name] = (seen - (low + high) / 2) * 2 / (high - low)
    assert found["paper"] == pytest.approx([0.0, 0.242857, 1.0, -0.99985, -0.99998], abs=1e-5)
    assert found["informative"][1] == pytest.approx(0.0) and found["informative"][3] == pytest.approx(0.25)
