"""Statistics against numbers computed by hand and against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlexp import stats

TEN = [0.76, 0.72, 0.73, 0.74, 0.74, 0.88, 0.84, 0.83, 0.74, 0.76]


def test_mean_and_std_divide_by_n_minus_one() -> None:
    assert stats.mean([1, 2, 6]) == 3
    assert stats.std([1, 2, 6]) == pytest.approx(math.sqrt((4 + 1 + 9) / 2))


def test_iqm_of_ten_keeps_the_middle_six() -> None:
    # sorted: .72 .73 | .74 .74 .74 .76 .76 .83 | .84 .88
    assert stats.iqm(TEN) == pytest.approx((0.74 * 3 + 0.76 * 2 + 0.83) / 6)


def test_iqm_of_three_leaves_nothing_out() -> None:
    assert stats.iqm([1, 2, 6]) == 3


def test_no_value_is_nan_and_one_value_has_no_interval() -> None:
    assert math.isnan(stats.mean([])) and math.isnan(stats.iqm([])) and math.isnan(stats.std([3]))
    assert not stats.mean_interval([3]).known
    assert math.isnan(stats.probability_of_improvement([], [1]))


def test_mean_interval_is_the_percentile_bootstrap_by_hand() -> None:
    draws = np.random.default_rng(stats.BOOTSTRAP_SEED).integers(0, 10, (stats.RESAMPLES, 10))
    low, high = np.percentile(np.asarray(TEN)[draws].mean(axis=1), [2.5, 97.5])
    found = stats.mean_interval(TEN)
    assert (found.low, found.high) == pytest.approx((low, high), abs=2e-3)
    assert found.low < stats.mean(TEN) < found.high
    assert stats.mean(TEN) in found and 0.9 not in found


def test_intervals_repeat_exactly() -> None:
    assert stats.mean_interval(TEN) == stats.mean_interval(TEN)
    assert stats.iqm_interval(TEN) == stats.iqm_interval(TEN)


def test_equal_values_give_a_point() -> None:
    assert stats.mean_interval([2.0, 2.0, 2.0]) == stats.Interval(2.0, 2.0)
    assert stats.iqm_interval([2.0, 2.0, 2.0]) == stats.Interval(2.0, 2.0)


def test_difference_and_ratio() -> None:
    a, b = [4.0, 4.0], [2.0, 2.0, 2.0]
    assert stats.difference_interval(a, b) == stats.Interval(2.0, 2.0)
    assert stats.ratio_interval(a, b) == stats.Interval(2.0, 2.0)


def test_probability_of_improvement_counts_ties_half() -> None:
    assert stats.probability_of_improvement([1, 3], [2, 3]) == pytest.approx((0 + 0 + 1 + 0.5) / 4)


def test_crossing_interpolates() -> None:
    assert stats.crossing([100, 200, 300], [0.5, 0.7, 0.9], 0.8) == pytest.approx(250)
    assert stats.crossing([100, 200, 300], [0.5, 0.8, 0.9], 0.8) == pytest.approx(200)
    assert stats.crossing([100, 200], [0.85, 0.7], 0.8) == 100
    assert stats.crossing([100, 200], [0.5, 0.7], 0.8) == math.inf


def test_crossing_takes_the_first_of_several() -> None:
    assert stats.crossing([100, 200, 300, 400], [0.7, 0.9, 0.6, 0.9], 0.8) == pytest.approx(150)


def test_crossing_of_many_curves_at_once() -> None:
    found = stats.crossing([100, 200], [[0.7, 0.9], [0.1, 0.2], [0.8, 0.1]], 0.8)
    assert found.tolist() == pytest.approx([150, math.inf, 100])


def test_mean_curve_crossing_with_interval() -> None:
    at, found = stats.mean_curve_crossing([100, 200, 300], [[0.6, 0.8, 0.9], [0.6, 0.7, 0.9]], 0.8)
    assert at == pytest.approx(200 + 100 * 0.05 / 0.15)
    assert (found.low, found.high) == pytest.approx((200, 250))


def test_mean_curve_crossing_may_be_open_ended() -> None:
    at, found = stats.mean_curve_crossing([100, 200], [[0.7, 0.9], [0.1, 0.2], [0.1, 0.2]], 0.8)
    assert at == math.inf and found.high == math.inf and found.low == pytest.approx(150)


def test_catch_up_by_hand() -> None:
    quick = (np.array([10.0, 20, 30]), np.array([[1.0, 3, 5], [3, 5, 7]]))  # mean 2, 4, 6
    slow = (np.array([10.0, 20, 40]), np.array([[0.0, 2, 3], [0, 2, 3]]))
    level, at, own, found = stats.sample_efficiency(quick, slow)
    assert (level, at, own) == pytest.approx((3, 15, 40))
    assert found.low == pytest.approx(10 / 40) and found.high == pytest.approx(20 / 40)
    level, at, own, found = stats.sample_efficiency(slow, quick)
    assert (level, at, own) == (6, math.inf, 30) and found.high == math.inf
    assert math.isnan(stats.sample_efficiency((np.empty(0), np.empty((0, 0))), slow)[1])


def test_crossing_of_a_level_each() -> None:
    found = stats.crossing([100, 200], [[0.0, 1.0], [0.0, 1.0]], np.array([0.5, 0.75]))
    assert found.tolist() == pytest.approx([150, 175])


def test_gap_difference_by_hand() -> None:
    def flat(level: float) -> np.ndarray:
        return np.full((3, 2), level)

    value, found = stats.gap_difference([(flat(0.9), flat(0.4)), (flat(0.9), flat(0.8))])
    assert value == pytest.approx(0.4)
    assert (found.low, found.high) == pytest.approx((0.4, 0.4))
