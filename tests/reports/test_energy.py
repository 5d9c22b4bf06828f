"""What a year-long episode brings into reports: months, the first year of training, reference controllers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rlexp.errors import UsageError
from rlexp.reports import figure, metrics
from rlexp.reports.definition import Panel
from rlexp.reports.load import load_runs, period_curves
from rlexp.studies import datacenter_fidelity
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


def _year(power: float, reward: float) -> dict[str, float]:
    return {"power_kw": power, "comfort_west": 1.0, "comfort_east": 0.5, "step_reward": reward}


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    asked: list[tuple[Any, ...]] = []

    def run_year(controller: str, backend: str, city: str, days: int) -> dict[str, float]:
        asked.append((controller, backend, city, days))
        return _year(100.0, 0.7) if backend == "engine" else _year(101.0, 0.8)

    monkeypatch.setattr(datacenter_fidelity, "run_year", run_year)
    monkeypatch.setattr(datacenter_fidelity, "load", lambda name: None)
    monkeypatch.setattr(datacenter_fidelity, "speed", lambda: {"model": 1e6, "gymnasium": 4e4})
    return asked


def test_every_line_has_a_verdict(asked_for: list[tuple[Any, ...]]) -> None:
    measured = datacenter_fidelity.measure(days=7)
    inside = {(line["row"], line["quantity"]): line["inside"] for line in measured["lines"]}
    assert inside["surrogate, builtin", "power_kw"] and not inside["surrogate, builtin", "step_reward"]
    assert inside["surrogate", "steps/s, model"] and not inside["surrogate", "steps/s, gymnasium"]
    assert ("random", "engine", "helsinki", 7) in asked_for and len(asked_for) == 10
    assert not any(row.startswith("engine") for row, _ in inside), "the references are those of a whole year"
    whole = datacenter_fidelity.measure()
    outside = [
        line["quantity"] for line in whole["lines"] if line["row"] == "engine, builtin" and not line["inside"]
    ]
    assert outside == ["power_kw", "comfort_east"]


def test_the_report_of_the_data_centre(
    place: Place, asked_for: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.report("datacenter_fidelity", "days=7") == 0
    assert place.report("datacenter_fidelity", "days=7", "--strict") == 1
    assert "4 of 8 figures as they must be; helsinki, 7 days" in capsys.readouterr().out
    folder = place.outputs / "reports" / "datacenter_fidelity"
    markdown = (folder / "datacenter_fidelity.md").read_text()
    assert "| builtin | 100.00 | 101.00 | 1.000/0.500 | 1.000/0.500 | 0.700 | 0.800 |" in markdown
    assert "| surrogate | steps/s, gymnasium | 40,000 | 50,000 | 50,000 or more | OUTSIDE |" in markdown
    assert "surrogate,pi_fan,power_kw,101" in (folder / "datacenter_fidelity.csv").read_text()
    for argument, said in (
        ("day=3", "did you mean 'days'"),
        ("days=0", "from 1 to 365"),
        ("more", "too many"),
    ):
        with pytest.raises(UsageError, match=said):
            place.report("datacenter_fidelity", argument)
