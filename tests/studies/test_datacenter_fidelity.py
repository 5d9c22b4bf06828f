"""The fidelity of the data centre: verdicts on every figure, and their report."""

from __future__ import annotations

from typing import Any

import pytest

from rlexp.errors import UsageError
from rlexp.studies import datacenter_fidelity
from tests.reports.synthetic import Place


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
    assert ("random", "engine", "helsinki", 7) in asked_for and len(asked_for) == 12
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
    assert "6 of 12 figures as they must be; helsinki, 7 days" in capsys.readouterr().out
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
