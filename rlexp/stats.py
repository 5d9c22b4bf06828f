"""Statistics over seeds: point estimates, bootstrap intervals, crossings of a threshold.

Every interval is a 95 % percentile bootstrap over seeds with a generator of its own that always starts from
:data:`BOOTSTRAP_SEED`, so that the same records always give the same bytes. ``rliable`` would be
the usual choice; it is archived, ignores its ``random_state`` and does not import beside pandas 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import bootstrap, trim_mean  # type: ignore[attr-defined]

BOOTSTRAP_SEED = 2021
RESAMPLES = 10_000
CONFIDENCE = 0.95

# Stands for "never" inside a bootstrap: percentiles interpolate, and infinity minus infinity is not a number.
_NEVER = 1e150

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A 95 % interval; both ends are nan when it cannot be computed (fewer than two seeds)."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def known(self) -> bool:
        """Whether the interval could be computed."""
        return not (math.isnan(self.low) or math.isnan(self.high))


UNKNOWN = Interval(math.nan, math.nan)


def mean(values: ArrayLike) -> float:
    """Arithmetic mean; nan for no values."""
    array = np.asarray(values, dtype=float)
    return float(array.mean()) if array.size else math.nan


def std(values: ArrayLike) -> float:
    """Standard deviation with ``ddof=1``, the estimate of the spread that further seeds would show.

    A paper seldom says whether it divides by n or n - 1; with 10 seeds this one is 5 % larger than the other.

    :return: nan for fewer than two values, and where one is not finite
    """
    array = np.asarray(values, dtype=float)
    return float(array.std(ddof=1)) if array.size > 1 and np.isfinite(array).all() else math.nan


def iqm(values: ArrayLike) -> float:
    """Interquartile mean: a quarter of the values, rounded down, is left out at each end (6 of 10 stay)."""
    array = np.asarray(values, dtype=float)
    return float(trim_mean(array, 0.25)) if array.size else math.nan


def interval(statistic: Callable[..., Any], *samples: ArrayLike) -> Interval:
    """95 % percentile bootstrap interval; every sample is resampled on its own.

    :param statistic: takes the samples and ``axis``, the axis of the seeds, and reduces it
    :param samples: one value per seed each
    :return: :data:`UNKNOWN` when a sample has fewer than two values
    """
    data = [np.nan_to_num(np.asarray(sample, dtype=float), posinf=_NEVER) for sample in samples]
    if any(sample.size < 2 for sample in data):
        return UNKNOWN
    result = bootstrap(
        data,
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(BOOTSTRAP_SEED),
    )
    low, high = result.confidence_interval
    return Interval(_open_end(float(low)), _open_end(float(high)))


def mean_band(curves: ArrayLike) -> tuple[Array, Array]:
    """95 % bootstrap interval of the mean at every point; seeds are resampled whole.

    :param curves: ``(n_seeds, n_points)``
    :return: lower and upper ends, ``(n_points,)`` each; nan for fewer than two seeds
    """
    array = np.asarray(curves, dtype=float)
    if len(array) < 2:
        return np.full(array.shape[1:], math.nan), np.full(array.shape[1:], math.nan)
    places = np.random.default_rng(BOOTSTRAP_SEED).integers(0, len(array), (RESAMPLES, len(array)))
    weights = np.stack([(places == seed).mean(axis=1) for seed in range(len(array))], axis=1)
    low, high = np.quantile(weights @ array, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    return low, high


def without_infinity(values: ArrayLike) -> Any:
    """Return what a statistic that may be inf has to return inside :func:`interval`, which puts inf back."""
    return np.nan_to_num(np.asarray(values, dtype=float), posinf=_NEVER)


def _open_end(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) > _NEVER / 1e50 else value


def mean_interval(values: ArrayLike) -> Interval:
    """95 % bootstrap interval of the mean."""
    return interval(np.mean, values)


def iqm_interval(values: ArrayLike) -> Interval:
    """95 % bootstrap interval of the interquartile mean."""
    return interval(lambda sample, axis: trim_mean(sample, 0.25, axis=axis), values)


def difference_interval(first: ArrayLike, second: ArrayLike) -> Interval:
    """95 % bootstrap interval of ``mean(first) - mean(second)``; unpaired: seeds share no randomness."""
    return interval(lambda a, b, axis: np.mean(a, axis=axis) - np.mean(b, axis=axis), first, second)


def ratio_interval(first: ArrayLike, second: ArrayLike) -> Interval:
    """95 % bootstrap interval of ``mean(first) / mean(second)``; unpaired."""
    return interval(lambda a, b, axis: np.mean(a, axis=axis) / np.mean(b, axis=axis), first, second)


def probability_of_improvement(first: ArrayLike, second: ArrayLike) -> float:
    """Probability that a seed of ``first`` is above one of ``second``, ties counted half (Mann-Whitney).

    :return: nan when either is empty
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if not a.size or not b.size:
        return math.nan
    above, equal = a[:, None] > b[None, :], a[:, None] == b[None, :]
    return float(np.mean(above + 0.5 * equal))


def crossing(x: ArrayLike, curve: ArrayLike, threshold: ArrayLike) -> Any:
    """Where a curve first reaches a threshold, interpolated linearly between the two measurements around it.

    :param x: shape ``(n_points,)``, increasing
    :param curve: shape ``(..., n_points)``
    :param threshold: level to be reached, one for all curves or one each, shape ``(...)``
    :return: shape ``(...)``; ``x[0]`` when the first measurement is there already, inf when none is
    """
    grid, y = np.asarray(x, dtype=float), np.asarray(curve, dtype=float)
    level = np.asarray(threshold, dtype=float)
    reached = y >= level[..., None]
    first = reached.argmax(axis=-1)
    before = np.maximum(first - 1, 0)
    upper = np.take_along_axis(y, first[..., None], axis=-1)[..., 0]
    lower = np.take_along_axis(y, before[..., None], axis=-1)[..., 0]
    rise = np.where(first > 0, upper - lower, 1.0)
    share = np.where(first > 0, (level - lower) / np.where(rise > 0, rise, 1.0), 1.0)
    at = grid[before] + share * (grid[first] - grid[before])
    return np.where(reached.any(axis=-1), at, math.inf)[()]


def mean_curve_crossing(x: ArrayLike, curves: ArrayLike, threshold: float) -> tuple[float, Interval]:
    """Where the mean curve over seeds first reaches a threshold, with its 95 % bootstrap interval over seeds.

    :param x: shape ``(n_points,)``
    :param curves: shape ``(n_seeds, n_points)``
    :return: both may be inf: not reached within the budget
    """
    stacked = np.asarray(curves, dtype=float)
    if not len(stacked):
        return math.nan, UNKNOWN

    def statistic(chosen: Array, axis: int) -> Any:
        seeds = np.moveaxis(chosen, axis, -1).astype(int)
        at = crossing(x, stacked[seeds].mean(axis=-2), threshold)
        return np.nan_to_num(at, posinf=_NEVER)

    return float(crossing(x, stacked.mean(axis=0), threshold)), interval(statistic, np.arange(len(stacked)))


def crossing_difference_interval(
    first: tuple[Array, Array], second: tuple[Array, Array], threshold: float
) -> Interval:
    """95 % bootstrap interval of the difference between two mean curves' crossings, in units of x; unpaired.

    :param first: x ``(n_points,)`` and curves ``(n_seeds, n_points)``
    :param second: the same for the curves whose crossing is subtracted
    """

    def at(sample: tuple[Array, Array], chosen: Array, axis: int) -> Any:
        seeds = np.moveaxis(chosen, axis, -1).astype(int)
        return np.nan_to_num(crossing(sample[0], sample[1][seeds].mean(axis=-2), threshold), posinf=_NEVER)

    def statistic(i: Array, j: Array, axis: int) -> Any:
        return at(first, i, axis) - at(second, j, axis)

    return interval(statistic, np.arange(len(first[1])), np.arange(len(second[1])))


def trailing_mean(curves: Array, n: int) -> Array:
    """Average every point of some curves with up to ``n - 1`` points before it.

    :param curves: shape ``(n_seeds, n_points)``
    :return: likewise
    """
    if n == 1 or not curves.size:
        return curves
    return np.stack(
        [curves[:, max(0, k + 1 - n) : k + 1].mean(axis=1) for k in range(curves.shape[1])], axis=1
    )


def sample_efficiency(
    first: tuple[Array, Array], second: tuple[Array, Array]
) -> tuple[float, float, float, Interval]:
    """How soon one mean curve reaches the level at which another ends.

    :param first: x ``(n_points,)`` and curves ``(n_seeds, n_points)``
    :param second: the same for the curves whose end is the level
    :return: the level; where the first mean curve reaches it; where the second itself first does; and the 95 %
        bootstrap interval of the quotient of the two places, both rows and the level resampled
    """

    def places(one: Array, other: Array) -> tuple[Any, Any]:
        level = other[..., -1]
        return crossing(first[0], one, level), crossing(second[0], other, level)

    def statistic(i: Array, j: Array, axis: int) -> Any:
        one, other = (
            curves[np.moveaxis(chosen, axis, -1).astype(int)].mean(axis=-2)
            for curves, chosen in ((first[1], i), (second[1], j))
        )
        at, own = places(one, other)
        return np.nan_to_num(at / own, posinf=_NEVER)

    if not len(first[1]) or not len(second[1]):
        return math.nan, math.nan, math.nan, UNKNOWN
    one, other = first[1].mean(axis=0), second[1].mean(axis=0)
    at, own = places(one, other)
    found = interval(statistic, np.arange(len(first[1])), np.arange(len(second[1])))
    return float(other[-1]), float(at), float(own), found


def mean_gap(first: Array, second: Array) -> float:
    """Mean distance between two mean curves: ``mean over x of |mean(first) - mean(second)|``.

    :param first: shape ``(n_seeds, n_points)``
    :param second: shape ``(m_seeds, n_points)``
    """
    return float(np.abs(first.mean(axis=0) - second.mean(axis=0)).mean())


def gap_difference(pairs: Sequence[tuple[Array, Array]]) -> tuple[float, Interval]:
    """How much farther apart the first pair's mean curves lie than the second pair's, with its 95 % interval.

    :param pairs: two pairs of curves, each of shape ``(n_seeds, n_points)``
    """
    (a, b), (c, d) = pairs

    def gaps(one: Array, other: Array, i: Array, j: Array, axis: int) -> Any:
        left = one[np.moveaxis(i, axis, -1).astype(int)].mean(axis=-2)
        right = other[np.moveaxis(j, axis, -1).astype(int)].mean(axis=-2)
        return np.abs(left - right).mean(axis=-1)

    def statistic(i: Array, j: Array, k: Array, m: Array, axis: int) -> Any:
        return gaps(a, b, i, j, axis) - gaps(c, d, k, m, axis)

    found = interval(statistic, *(np.arange(len(curves)) for curves in (a, b, c, d)))
    return mean_gap(a, b) - mean_gap(c, d), found
