"""The comparison with the reference: its arithmetic here, its verdict in `rlexp report
restaurant_fidelity`."""

from __future__ import annotations

import json

import pytest

from rlexp.studies.restaurant_fidelity import GOALS, REFERENCE_CASES, _line, measure, run_table
from tests.envs.restaurant.conftest import Files


def test_lines() -> None:
    result = measure(tables=2, dialogues=30)
    assert json.loads(json.dumps(result)) == result
    assert result["inside"] + result["outside"] == len(result["lines"])
    assert {line["row"] for line in result["lines"]} == {*REFERENCE_CASES, "goals"}
    quantities = [(line["row"], line["quantity"]) for line in result["lines"]]
    assert len(set(quantities)) == len(quantities)
    assert sum(row == "goals" for row, _ in quantities) == sum(map(len, GOALS.values()))
    for line in result["lines"]:
        assert line["inside"] == (abs(line["measured"] - line["reference"]) <= line["tolerance"] + 1e-12)
    assert [len(tables) for tables in result["by_table"].values()] == [2] * len(REFERENCE_CASES)


def test_processes_share_the_work_and_change_nothing() -> None:
    assert measure(tables=2, dialogues=4, processes=2) == measure(tables=2, dialogues=4)


def test_a_wrong_figure_is_outside() -> None:
    assert _line("row", "x", 86.0, 85.0, 0.7)["inside"] is False
    assert _line("row", "x", 84.4, 85.0, 0.7)["inside"] is True


def test_bad_numbers() -> None:
    with pytest.raises(ValueError, match="tables=0"):
        measure(tables=0)


def test_handcrafted_policy_without_errors() -> None:
    counts = run_table("handcrafted_0", None, None, 0, 1500)
    assert counts["success"] >= 1498
    assert counts["turns"] / 1500 == pytest.approx(5.94, abs=0.17)
    assert counts["right"] == sum(counts["user_acts"].values())


def test_goal_figures_and_names_of_pydials_data(real_files: Files) -> None:
    result = measure(*real_files, tables=1, dialogues=5)
    assert result["database"] == "CamRestaurants-dbase.db"
    goals = [line for line in result["lines"] if line["row"] == "goals"]
    # The reference saw 2,000 goals: "centre" is 33.9 % of the 56 goals, 31.5 % there.
    assert [line["quantity"] for line in goals if not line["inside"]] in ([], ["area: centre"])
