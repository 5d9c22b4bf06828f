"""The speech channel: what the system receives when the user says something."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import cos, log, pi, sin, sqrt
from random import Random
from typing import NamedTuple

from rlexp.envs.restaurant.acts import DialogueAct
from rlexp.envs.restaurant.confusion import ConfusionTables
from rlexp.envs.restaurant.domain import Domain
from rlexp.envs.restaurant.tracker import Hypothesis

ERROR_MODELS = ("set1", "set3", "random")
MAX_N_BEST = 5
_NULL = DialogueAct("null")
_LOWEST, _HIGHEST = 0.01, 0.99
_LEAST_DEVIATION = 0.0001
_TWO_PI = 2.0 * pi


class ChannelStatistics(NamedTuple):
    """Statistics of a recogniser, estimated on DSTC 2 by PyDial's authors.

    :param correct_lengths: weight of a list of 1, 2, ... hypotheses when the first is right
    :param incorrect_lengths: the same when it is wrong
    :param truth_positions: weight of the truth's position 0, 1, ... when the first is wrong
    :param correct_scores: (mean, variance) of the raw score at each position, one past the longest list
        included
    :param incorrect_scores: the same for a list whose truth is not first
    """

    correct_lengths: tuple[float, ...]
    incorrect_lengths: tuple[float, ...]
    truth_positions: tuple[float, ...]
    correct_scores: tuple[tuple[float, float], ...]
    incorrect_scores: tuple[tuple[float, float], ...]


def _scores(means: Sequence[float], variances: Sequence[float]) -> tuple[tuple[float, float], ...]:
    return tuple(zip(means, variances, strict=True))


STATISTICS = {
    "set1": ChannelStatistics(
        correct_lengths=(0.264, 0.215, 0.138, 0.099, 0.08),
        incorrect_lengths=(0.3, 0.068, 0.085, 0.072, 0.079),
        truth_positions=(0, 0.179, 0.063, 0.027, 0.017),
        correct_scores=_scores(
            (0.871, 0.103, 0.045, 0.032, 0.027, 0.049), (0.029, 0.01, 0.002, 0.001, 0, 0.001)
        ),
        incorrect_scores=_scores(
            (0.757, 0.179, 0.077, 0.048, 0.037, 0.065), (0.052, 0.014, 0.003, 0.001, 0, 0.002)
        ),
    ),
    "set3": ChannelStatistics(
        correct_lengths=(0.147, 0.43, 0.212, 0.147, 0.048),
        incorrect_lengths=(0.351, 0.388, 0.158, 0.071, 0.02),
        truth_positions=(0, 0.116, 0.027, 0.007, 0.002),
        correct_scores=_scores(
            (0.905, 0.101, 0.017, 0.008, 0.005, 0.01), (0.016, 0.013, 0.002, 0.001, 0, 0.001)
        ),
        incorrect_scores=_scores(
            (0.871, 0.164, 0.065, 0.043, 0.03, 0.054), (0.029, 0.02, 0.005, 0.002, 0.001, 0.003)
        ),
    ),
}


class ErrorModel:
    """Turns a user act into an N-best list with confidences.

    :param domain: the domain
    :param error_rate: probability that the first hypothesis is wrong, 0 to 1
    :param model: ``set1`` or ``set3`` for lists with DSTC 2 statistics, ``random`` for a single hypothesis
    :param n_best: longest list, 1 to 5; lists of ``random`` have one hypothesis
    """

    def __init__(self, domain: Domain, error_rate: float, model: str, n_best: int) -> None:
        self.error_rate = error_rate
        self.tables: ConfusionTables | None = None
        """What is confused with what; must be set before the first act is heard."""
        self._statistics = STATISTICS.get(model)
        if self._statistics is not None:
            self._correct_lengths = _cumulative(self._statistics.correct_lengths[:n_best])
            self._incorrect_lengths = _cumulative(self._statistics.incorrect_lengths[:n_best])
            self._truth_positions = _cumulative(self._statistics.truth_positions)
            self._correct_scores = _deviations(self._statistics.correct_scores)
            self._incorrect_scores = _deviations(self._statistics.incorrect_scores)

    def transmit(self, act: DialogueAct, random: Random) -> list[Hypothesis]:
        """What is heard of an act.

        :param act: what the user says
        :param random: source of randomness
        :return: hypotheses with probabilities that sum to 1, the recogniser's favourite first; with
            ``set1`` and ``set3`` some probability always stays with ``null()``, usually at the end
        """
        draw = random.random
        tables = self.tables
        assert tables is not None, "the confusion tables have not been set"
        wrong = self.error_rate > 0.0 and draw() < self.error_rate
        if self._statistics is None:
            return [(tables.confuse(act, random) if wrong else act, 1.0)]
        if wrong:
            length = bisect(self._incorrect_lengths, draw()) + 1
            position = bisect(self._truth_positions, draw())
        else:
            length = bisect(self._correct_lengths, draw()) + 1
            position = 0
        acts = [act] if position == 0 else []
        while len(acts) < length:
            if len(acts) == position:
                acts.append(act)
                continue
            confused = tables.confuse_otherwise(act, acts, random)
            if confused is None:
                break
            acts.append(confused)
        # The statistics of a wrong list need the truth further down; a list without it looks like a right
        # one.
        scores = self._incorrect_scores if 0 < position < len(acts) else self._correct_scores
        return _with_confidences(acts, scores, random)


@lru_cache(maxsize=64)
def _cumulative(weights: tuple[float, ...]) -> tuple[float, ...]:
    """Cumulative shares without the last, so that bisecting with a number below 1 gives an index."""
    total = sum(weights)
    return tuple(accumulate(weight / total for weight in weights))[:-1]


@lru_cache(maxsize=64)
def _deviations(scores: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    return tuple((mean, max(_LEAST_DEVIATION, variance**0.5)) for mean, variance in scores)


def _with_confidences(
    acts: list[DialogueAct], statistics: Sequence[tuple[float, float]], random: Random
) -> list[Hypothesis]:
    """Draw a score for every position; what the list does not use belongs to null()."""
    draw = random.random
    scores = []
    normal = spare = 0.0
    second = False
    for mean, deviation in statistics:
        # Box and Muller's pairs, written out: Random.gauss does the same at twice the time.
        if second:
            normal = spare
        else:
            angle, radius = _TWO_PI * draw(), sqrt(-2.0 * log(1.0 - draw()))
            normal, spare = radius * cos(angle), radius * sin(angle)
        second = not second
        score = mean + deviation * normal
        scores.append(_LOWEST if score < _LOWEST else _HIGHEST if score > _HIGHEST else score)
    used = len(acts)
    rest = sum(scores[used:])
    if _NULL in acts:
        scores[acts.index(_NULL)] += rest
    else:
        acts.append(_NULL)
        scores[used] = rest
        used += 1
    total = sum(scores[:used])
    # Four decimals, as the reference writes them.
    ten_thousandths = [int(10_000.0 * score / total + 0.5) for score in scores[:used]]
    total = sum(ten_thousandths)
    return [(act, score / total) for act, score in zip(acts, ten_thousandths, strict=True)]
