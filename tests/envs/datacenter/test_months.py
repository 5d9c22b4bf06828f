"""The months of a year: rows of training, the first year in the record, the mean year of an evaluation."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from rlexp import registry
from rlexp.cli import main
from rlexp.envs.datacenter.months import Months


def _month(number: int, power: float) -> dict[str, float]:
    return {"month": number, "power_kw": power}


def test_only_the_first_year_of_the_first_environment_is_kept() -> None:
    months = Months()
    assert months.step(0, {}, False) is None
    assert months.step(1, {"period": _month(1, 9.0)}, False) == _month(1, 9.0)
    assert months.step(0, {"period": _month(1, 5.0)}, False) == _month(1, 5.0)
    assert months.record() == {"first_episode": None}
    resumed = Months()
    resumed.load_state(json.loads(json.dumps(months.state())))
    for each in (months, resumed):
        each.step(0, {"period": _month(2, 7.0), "power_kw": 6.0, "year": 0}, True)
        each.step(0, {"period": _month(1, 1.0), "power_kw": 1.0}, True)
        year = {"power_kw": 6.0, "periods": [_month(1, 5.0), _month(2, 7.0)]}
        assert each.record() == {"first_episode": year}


def test_an_evaluation_has_the_mean_of_every_month_that_all_years_reach() -> None:
    years = [
        [{"period": _month(1, 4.0)}, {"weather": "x"}, {"period": _month(2, 6.0)}],
        [{"period": _month(1, 8.0)}],
    ]
    assert Months.evaluation(years) == {"periods": [_month(1, 6.0)]}
    assert Months.evaluation([[], []]) == {}


def test_actors_elsewhere_do_not_send_what_a_tracker_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = dataclasses.replace(registry.env("repeat_previous"), tracker="rlexp.envs.datacenter.months:Months")
    monkeypatch.setitem(registry.envs(), "repeat_previous", spec)
    assert (
        main(["algo=r2d2", "env=repeat_previous", "hardware=ray", "total_timesteps=100", "logger=none"]) == 2
    )
    assert "hardware=ray: env=repeat_previous records what happens within" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
