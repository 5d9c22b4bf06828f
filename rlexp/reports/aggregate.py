"""Settings held against a baseline over several tasks: relative scores, tasks won, training needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import trim_mean

from rlexp import stats
from rlexp.reports import text
from rlexp.reports.definition import Aggregate
from rlexp.reports.load import LoadedRuns, curves
from rlexp.stats import Interval

Array = NDArray[np.float64]
Pairs = Sequence[
    tuple[Array, Array]
]  # per task: curves of the setting and of the baseline, (..., n_seeds, n_points)
Statistic = Callable[[Array, Pairs], Any]


@dataclass(frozen=True)
class AggregateScore:
    """One setting beside the baseline.

    :param tasks: those with runs of both, of ``expected`` in all
    :param iqm: interquartile mean over all tasks and seeds of the final score divided by the baseline's mean
    :param won: tasks whose mean final score is above the baseline's
    :param share: training after which the interquartile mean reaches the one with which the baseline ends, divided by
        the training after which the baseline first does
    """

    setting: str
    tasks: tuple[str, ...]
    expected: int
    n: int
    iqm: float
    iqm_interval: Interval
    won: int
    won_interval: Interval
    share: float
    share_interval: Interval


def measure(wanted: Aggregate, loaded: LoadedRuns) -> tuple[AggregateScore, ...]:
    """Compute the scores of every setting, in the order of the settings.

    :param wanted: settings, baseline and environments to compare
    :param loaded: runs of the sweep
    """
    return tuple(_score(wanted, setting, loaded) for setting in wanted.settings)


def _score(wanted: Aggregate, setting: str, loaded: LoadedRuns) -> AggregateScore:
    x: Array = np.empty(0)
    tasks: list[str] = []
    pairs: list[tuple[Array, Array]] = []
    for task in wanted.tasks:
        (places, ours), (others, base) = (
            _curves(wanted, f"{task} {name}", loaded) for name in (setting, wanted.baseline)
        )
        points = min(len(places), len(others))
        # Relative to nothing, a score says nothing.
        if not points or (tasks and points != len(x)) or base[:, points - 1].mean() <= 0:
            continue
        x = places[:points]
        tasks.append(task)
        pairs.append((ours[:, :points], base[:, :points]))
    if not tasks:
        nothing = stats.UNKNOWN
        return AggregateScore(
            setting, (), len(wanted.tasks), 0, math.nan, nothing, 0, nothing, math.nan, nothing
        )
    itself = setting == wanted.baseline
    values = [float(statistic(x, pairs)) for statistic in (_iqm, _won, _share)]
    within = [_interval(statistic, x, pairs, itself) for statistic in (_iqm, _won, _share)]
    runs = sum(len(ours) for ours, _ in pairs)
    return AggregateScore(
        setting, tuple(tasks), len(wanted.tasks), runs, values[0], within[0], int(values[1]), within[1], values[2],
        within[2],
    )  # fmt: skip


def _curves(wanted: Aggregate, label: str, loaded: LoadedRuns) -> tuple[Array, Array]:
    x, stacked = curves(loaded, label, wanted.metric, wanted.x)
    return x, stats.trailing_mean(stacked, wanted.last)


def _relative(pairs: Pairs) -> tuple[Array, Array]:
    """Return the setting's and the baseline's scores relative to the baseline's end, ``(..., n_runs, n_points)``."""
    ends = [base[..., -1].mean(axis=-1)[..., None, None] for _, base in pairs]
    ours, theirs = (
        np.concatenate([pair[which] / end for pair, end in zip(pairs, ends, strict=True)], axis=-2)
        for which in (0, 1)
    )
    return ours, theirs


def _iqm(x: Array, pairs: Pairs) -> Any:
    return trim_mean(_relative(pairs)[0][..., -1], 0.25, axis=-1)


def _won(x: Array, pairs: Pairs) -> Any:
    return sum(
        (ours[..., -1].mean(axis=-1) > base[..., -1].mean(axis=-1)).astype(float) for ours, base in pairs
    )


def _share(x: Array, pairs: Pairs) -> Any:
    ours, theirs = (trim_mean(scores, 0.25, axis=-2) for scores in _relative(pairs))
    level = theirs[..., -1]
    return stats.crossing(x, ours, level) / stats.crossing(x, theirs, level)


def _interval(statistic: Statistic, x: Array, pairs: Pairs, itself: bool) -> Interval:
    """Resample the seeds of every task; those of the baseline on their own, unless it is held against itself."""

    def resampled(*chosen: Array, axis: int) -> Any:
        def pick(scores: Array, seeds: Array) -> Array:
            return np.asarray(scores[np.moveaxis(seeds, axis, -1).astype(int)])

        mine = [pick(ours, seeds) for (ours, _), seeds in zip(pairs, chosen, strict=False)]
        theirs = (
            mine
            if itself
            else [pick(base, seeds) for (_, base), seeds in zip(pairs, chosen[len(pairs) :], strict=True)]
        )
        return stats.without_infinity(statistic(x, list(zip(mine, theirs, strict=True))))

    samples = [np.arange(len(ours)) for ours, _ in pairs]
    if not itself:
        samples += [np.arange(len(base)) for _, base in pairs]
    return stats.interval(resampled, *samples)


# ----------------------------------------------------------------------------------------------------- writing

_HEADER = ("", "tasks", "IQM of the relative score", "95 %", "tasks won", "95 %", "share of training", "95 %")


def rows(wanted: Aggregate, scores: Sequence[AggregateScore]) -> list[list[str]]:
    """Return the cells of a table, one row per setting.

    :param wanted: settings, baseline and environments to compare
    :param scores: of :func:`measure`
    """
    found = []
    for one in scores:
        itself = one.setting == wanted.baseline
        found.append(
            [
                one.setting,
                f"{len(one.tasks)}/{one.expected}",
                text.number(one.iqm, 2),
                text.interval(one.iqm_interval, 2),
                text.MISSING if itself or not one.tasks else str(one.won),
                text.MISSING if itself else text.interval(one.won_interval, 0),
                text.MISSING if itself else text.number(one.share, 2),
                text.MISSING if itself else text.interval(one.share_interval, 2),
            ]
        )
    return found


def header() -> list[str]:
    """Return the headings of :func:`rows`."""
    return list(_HEADER)


def note(wanted: Aggregate) -> str:
    """Say what the numbers of :func:`rows` are.

    :param wanted: settings, baseline and environments to compare
    """
    final = "the last evaluation" if wanted.last == 1 else f"the mean of the last {wanted.last} evaluations"
    return (
        f"Relative score: {final} divided by the mean of it that {wanted.baseline} reaches on the same task; "
        f"IQM over all tasks and seeds. Share of training: {wanted.x} until the IQM reaches the one with which "
        f"{wanted.baseline} ends, divided by those that {wanted.baseline} itself takes to get there"
        + ("" if wanted.last == 1 else f"; every point is the mean of the last {wanted.last} evaluations")
        + ". Intervals: seeds are resampled within every task."
    )


def frame(scores: Sequence[AggregateScore]) -> pd.DataFrame:
    """Return one row per setting.

    :param scores: of :func:`measure`
    """
    numbers = ("iqm", "won", "share")
    return pd.DataFrame(
        [
            {"setting": one.setting, "tasks": " ".join(one.tasks), "runs": one.n}
            | {
                f"{name}{end}": value
                for name in numbers
                for end, value in (
                    ("", getattr(one, name)),
                    ("_low", getattr(one, f"{name}_interval").low),
                    ("_high", getattr(one, f"{name}_interval").high),
                )
            }
            for one in scores
        ]
    )
