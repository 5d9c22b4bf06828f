"""Settings over several tasks: relative scores, tasks won, training needed; curves made of chosen numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import trim_mean

from rlexp import stats
from rlexp.errors import UsageError
from rlexp.reports import aggregate
from rlexp.reports.definition import Aggregate
from rlexp.reports.load import LoadedRuns
from tests.reports.synthetic import Place, folder_bytes, loaded, row, write_run

WANTED = Aggregate(tasks=("a", "b"), settings=("old", "new"), baseline="old")


def collection(scores: dict[str, list[list[float]]]) -> LoadedRuns:
    """Make runs of curves, ``label: one list of scores per seed``, evaluated every 100 steps."""
    return loaded(
        *(
            (label, seed, [{"timesteps": 100 * (k + 1), "return_mean": y} for k, y in enumerate(curve)], {})
            for label, seeds in scores.items()
            for seed, curve in enumerate(seeds)
        )
    )


SCORES: dict[str, list[list[float]]] = {
    "a old": [[0, 1, 2, 4], [0, 1, 2, 4], [0, 1, 2, 4]],
    "a new": [[0, 4, 5, 6], [0, 4, 5, 8], [0, 4, 5, 10]],
    "b old": [[0, 10, 20, 40], [0, 10, 20, 40], [0, 10, 20, 40]],
    "b new": [[0, 40, 40, 20], [0, 40, 40, 30], [0, 40, 40, 40]],
}


def test_numbers_by_hand() -> None:
    old, new = aggregate.measure(WANTED, collection(SCORES))
    assert old.iqm == 1.0 and old.share == 1.0 and old.iqm_interval == stats.Interval(1.0, 1.0)
    # 6/4, 8/4, 10/4 and 20/40, 30/40, 40/40: one left out at each end
    assert new.iqm == pytest.approx((0.75 + 1.0 + 1.5 + 2.0) / 4)
    assert (new.won, new.n, new.tasks) == (1, 6, ("a", "b"))
    # The baseline ends at 1, after 400; the relative scores of the other are all 1 after 200.
    assert new.share == pytest.approx(0.5)
    assert new.share_interval.known and new.won_interval == stats.Interval(1.0, 1.0)


def test_final_scores_of_several_evaluations() -> None:
    wanted = Aggregate(**{**vars(WANTED), "last": 2})
    _, new = aggregate.measure(wanted, collection(SCORES))
    values = [5.5 / 3, 6.5 / 3, 7.5 / 3, 30 / 30, 35 / 30, 40 / 30]
    assert new.iqm == pytest.approx(trim_mean(values, 0.25))
    assert new.won == 2


def test_the_share_is_of_what_the_baseline_itself_takes() -> None:
    early = collection({"a old": [[0, 4, 2, 4]] * 2, "a new": [[4, 4, 4, 4]] * 2})
    wanted = Aggregate(tasks=("a",), settings=("new",), baseline="old")
    assert aggregate.measure(wanted, early)[0].share == pytest.approx(100 / 200)


def test_the_interval_resamples_seeds_within_tasks() -> None:
    rng = np.random.default_rng(0)
    scores = {label: [[1.0, 10 + rng.normal()] for _ in range(8)] for label in SCORES}
    _, new = aggregate.measure(WANTED, collection(scores))
    ours = {task: np.array([curve[-1] for curve in scores[f"{task} new"]]) for task in "ab"}
    base = {task: np.array([curve[-1] for curve in scores[f"{task} old"]]) for task in "ab"}
    drawn = []
    for _ in range(4000):
        values = [rng.choice(ours[task], 8) / rng.choice(base[task], 8).mean() for task in "ab"]
        drawn.append(trim_mean(np.concatenate(values), 0.25))
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert new.iqm_interval.low == pytest.approx(low, abs=0.006)
    assert new.iqm_interval.high == pytest.approx(high, abs=0.006)


def test_never_reached_is_no_share_and_nothing_there_is_nothing() -> None:
    low: dict[str, list[list[float]]] = {**SCORES, "a new": [[0, 0, 0, 1]] * 3, "b new": [[0, 0, 0, 10]] * 3}
    never = aggregate.measure(WANTED, collection(low))[1]
    assert never.share == math.inf == never.share_interval.high
    nothing = aggregate.measure(WANTED, collection({}))[1]
    assert nothing.tasks == () and math.isnan(nothing.iqm)
    assert aggregate.rows(WANTED, [nothing])[0][1:3] == ["0/2", "–"]


def test_a_task_without_runs_or_without_a_score_of_the_baseline_is_left_out() -> None:
    partly = {label: curves for label, curves in SCORES.items() if label != "b new"}
    assert aggregate.measure(WANTED, collection(partly))[1].tasks == ("a",)
    zero: dict[str, list[list[float]]] = {**SCORES, "b old": [[0.0] * 4] * 3}
    assert aggregate.measure(WANTED, collection(zero))[1].tasks == ("a",)


SWEEP = """
title: Two tasks
seeds: 0-2
runs:
  - {label: a old, overrides: [algo=ppo, env=restaurant]}
  - {label: a new, overrides: [algo=lcpo, env=restaurant]}
  - {label: b old, overrides: [algo=ppo, env=other]}
  - {label: b new, overrides: [algo=lcpo, env=other]}
table:
  columns:
    - {name: final, label: Final, metric: return_mean, last: 3, digits: 2}
  sample_efficiency:
    - {of: a new, reaches: a old, last: 3}
  aggregate: {tasks: [a, b], settings: [old, new], baseline: old, metric: success_rate, last: 3}
figure:
  panels:
    - {title: a, metric: success_rate, x: timesteps, log: false, rows: [a old, a new]}
    - {title: b, metric: success_rate, x: timesteps, log: false, rows: [b old, b new]}
    - {title: d, metric: success_rate, x: timesteps, log: false, rows: [b old, b new]}
"""


def test_the_report_says_it_and_is_the_same_every_time(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    (place.sweeps / "tasks.yaml").write_text(SWEEP)

    def rising(episodes: int, seed: int) -> float:
        return episodes / 4000 + seed / 100

    for run in place.expected("tasks"):
        write_run(run, (lambda e, s: 2 * rising(e, s)) if "new" in run.label else rising)
    assert place.report("tasks", "--strict") == 0
    first = folder_bytes(place.outputs / "reports")
    markdown = first["tasks/tasks_table.md"].decode()
    assert "## Across tasks" in markdown and "| new | 2/2 | 2.00 |" in markdown
    assert "Every point is the mean of the last 3 evaluations" in markdown
    lines = first["tasks/tasks_across.csv"].decode().splitlines()
    assert lines[0].startswith("setting,tasks,runs,iqm,iqm_low") and lines[2].startswith("new,a b,6,2,")
    assert "across a, b" in capsys.readouterr().out
    last = [row(episodes, rising(episodes, 0))["return_mean"] for episodes in (1800, 1900, 2000)]
    assert f"{np.mean(last):.2f}  " in markdown, "the first seed's mean of three"
    place.report("tasks")
    assert folder_bytes(place.outputs / "reports") == first


def test_rows_that_are_not_there_are_named(place: Place) -> None:
    (place.sweeps / "tasks.yaml").write_text(SWEEP.replace("tasks: [a, b]", "tasks: [a, c]"))
    with pytest.raises(UsageError, match="no row is called 'c old'"):
        place.load("tasks")
