"""N-best lists and their confidences."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from rlexp.envs.restaurant.acts import parse_act
from rlexp.envs.restaurant.channel import ErrorModel, _with_confidences
from rlexp.envs.restaurant.confusion import confusion_tables
from rlexp.envs.restaurant.domain import Domain
from rlexp.envs.restaurant.tracker import Hypothesis

ACT = parse_act("inform(food=thai,area=north)")
NULL = parse_act("null()")


def _channel(domain: Domain, rate: float, model: str = "set1", n_best: int = 5) -> ErrorModel:
    channel = ErrorModel(domain, rate, model, n_best)
    channel.tables = confusion_tables(domain, "random" if model == "random" else "levenshtein", 0)
    return channel


def _lists(
    domain: Domain, rate: float, model: str = "set1", n_best: int = 5, n: int = 20_000
) -> list[list[Hypothesis]]:
    channel, random = _channel(domain, rate, model, n_best), Random(1)
    return [channel.transmit(ACT, random) for _ in range(n)]


@pytest.mark.parametrize(
    ("rate", "model", "right", "length"), [(0.15, "set1", 0.85, 3.35), (0.3, "set3", 0.70, 3.33)]
)
def test_how_often_the_first_is_right_and_how_long_lists_are(
    domain: Domain, rate: float, model: str, right: float, length: float
) -> None:
    lists = _lists(domain, rate, model)
    assert sum(heard[0][0] == ACT for heard in lists) / len(lists) == pytest.approx(right, abs=0.01)
    assert sum(map(len, lists)) / len(lists) == pytest.approx(length, abs=0.04)


def test_truth_in_a_wrong_list(domain: Domain) -> None:
    lists = _lists(domain, 1.0)
    assert all(heard[0][0] != ACT for heard in lists)
    present = sum(any(act == ACT for act, _ in heard) for heard in lists) / len(lists)
    assert present == pytest.approx(0.432, abs=0.012)


def test_lists_are_distinct_sum_to_one_and_leave_room_for_silence(domain: Domain) -> None:
    for heard in _lists(domain, 0.5, n=3000):
        acts = [act for act, _ in heard]
        assert len(acts) == len(set(acts)) <= 6
        assert sum(p for _, p in heard) == pytest.approx(1.0, abs=1e-12)
        assert all(p > 0 for _, p in heard)
        assert acts.count(NULL) == 1


def test_lengths_follow_the_statistics(domain: Domain) -> None:
    counts = Counter(len([act for act, _ in heard if act != NULL]) for heard in _lists(domain, 0.0))
    total = 0.264 + 0.215 + 0.138 + 0.099 + 0.08
    # Where null() is itself among the confusions the list looks one shorter; inform acts are rarely
    # misheard as null.
    assert counts[1] / 20_000 == pytest.approx(0.264 / total, abs=0.02)
    assert counts[5] / 20_000 == pytest.approx(0.08 / total, abs=0.02)


def test_n_best_limits_the_list(domain: Domain) -> None:
    assert all(len(heard) <= 3 for heard in _lists(domain, 0.3, n_best=2, n=500))
    assert all(len(heard) == 2 for heard in _lists(domain, 0.0, n_best=1, n=500))


def test_absent_truth_gets_the_statistics_of_a_right_list(domain: Domain) -> None:
    wrong = _lists(domain, 1.0)
    alone = [heard[0][1] for heard in wrong if len(heard) == 2]
    right = [heard[0][1] for heard in _lists(domain, 0.0) if len(heard) == 2]
    assert sum(alone) / len(alone) == pytest.approx(sum(right) / len(right), abs=0.015)
    present = [heard[1][1] for heard in wrong if len(heard) == 3 and heard[1][0] == ACT]
    absent = [heard[1][1] for heard in wrong if len(heard) == 3 and all(act != ACT for act, _ in heard)]
    # A truth in second place is heard better (mean .179) than any other second hypothesis (mean .103).
    assert sum(present) / len(present) > 1.3 * sum(absent) / len(absent)


def test_null_in_the_list_takes_the_rest(domain: Domain) -> None:
    statistics = ((0.6, 1e-9), (0.1, 1e-9), (0.1, 1e-9), (0.1, 1e-9), (0.05, 1e-9), (0.05, 1e-9))
    heard = _with_confidences([ACT, NULL], statistics, Random(0))
    assert [p for _, p in heard] == pytest.approx([0.6, 0.4])
    heard = _with_confidences([ACT], statistics, Random(0))
    assert [act for act, _ in heard] == [ACT, NULL] and heard[0][1] == pytest.approx(0.6)


def test_scores_are_clipped(domain: Domain) -> None:
    heard = _with_confidences([ACT], ((5.0, 1e-9), *[(-1.0, 1e-9)] * 5), Random(0))
    assert heard[0][1] == pytest.approx(0.99 / 1.04, abs=1e-4)


def test_error_free_channel_is_exact(domain: Domain) -> None:
    assert all(heard == [(ACT, 1.0)] for heard in _lists(domain, 0.0, "random", 1, n=200))


def test_single_hypothesis_channel_with_errors(domain: Domain) -> None:
    lists = _lists(domain, 0.2, "random", 1, n=5000)
    assert all(len(heard) == 1 and heard[0][1] == 1.0 for heard in lists)
    assert sum(heard[0][0] == ACT for heard in lists) / 5000 == pytest.approx(0.8, abs=0.02)
