"""Loading runs: the periods of long episodes, such as the months of a year."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rlexp.errors import UsageError
from rlexp.reports import figure, metrics
from rlexp.reports.definition import Panel
from rlexp.reports.load import load_runs, period_curves
from tests.reports.synthetic import Place, loaded, row, write_run

_YEARS = """
title: Years
seeds: 3-4
common: [env=datacenter]
runs:
  - {label: PPO, overrides: [algo=ppo]}
  - {label: chance, overrides: [algo=random]}
table:
  columns:
    - {name: year, label: Power, metric: first_episode.power_kw, source: record, better: lower}
figure:
  panels:
    - {title: year, metric: power_kw, periods: first_episode, x: month, log: false, xlabel: month}
    - {title: test, metric: power_kw, periods: evaluation, x: month, log: false, xlabel: month}
"""


def _periods(first: float) -> list[dict[str, float]]:
    return [{"month": month, "power_kw": first + month} for month in (1, 2, 3)]


def test_months_of_the_first_year_and_of_the_last_evaluation() -> None:
    def evaluated(seed: int) -> list[dict[str, Any]]:
        return [{"episodes": 1, "periods": _periods(50.0 + seed)}]

    trained = {"first_episode": {"power_kw": 92.0, "periods": _periods(90.0)}}
    runs = loaded(("PPO", 0, evaluated(0), trained), ("PPO", 1, evaluated(1), {}))
    x, stacked = period_curves(runs, "PPO", "power_kw", "month", "first_episode")
    assert x.tolist() == [1, 2, 3] and stacked.tolist() == [[91, 92, 93]], "one run has no first year"
    x, stacked = period_curves(runs, "PPO", "power_kw", "month", "evaluation")
    assert stacked.tolist() == [[51, 52, 53], [52, 53, 54]]
    assert period_curves(runs, "PPO", "nothing", "month", "evaluation")[0].size == 0
    assert period_curves(loaded(), "PPO", "power_kw", "month", "evaluation")[0].size == 0
    panel = Panel("year", "power_kw", periods="first_episode", x="month")
    assert figure._curves(runs, "PPO", panel)[1].tolist() == [[91, 92, 93]]


def test_a_sweep_of_years(place: Place) -> None:
    (place.sweeps / "years.yaml").write_text(_YEARS)
    sweep, runs = place.load("years"), place.expected("years")
    for run in runs:
        write_run(run, lambda episodes, seed: 0.5)
        record = json.loads((run.folder / "record.json").read_text())
        record["first_episode"] = {"power_kw": 90.0 + run.seed, "periods": _periods(90.0)}
        (run.folder / "record.json").write_text(json.dumps(record))
        last = row(2000 if run.label == "PPO" else 0, 0.5) | {"periods": _periods(80.0)}
        (run.folder / "evaluations.jsonl").write_text(json.dumps(last) + "\n")
    found = load_runs(runs)
    assert not found.missing, "a policy that learns nothing needs no budget"
    table = metrics.build(sweep, found)
    assert [line[0].mean for line in table.metrics] == [93.5, 93.5]
    assert place.report("years", "--strict") == 0
    curves = (place.outputs / "reports" / "years" / "years.csv").read_text()
    assert "test,chance,power_kw,,3,2,2,83," in curves
    (place.sweeps / "years.yaml").write_text(_YEARS.replace("periods: evaluation", "periods: months"))
    with pytest.raises(UsageError, match="allowed are first_episode, evaluation"):
        place.load("years")
