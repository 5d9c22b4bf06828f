"""The fidelity report: rendering, strictness and arguments; the measurement itself is tested in tests/studies."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from rlexp.errors import UsageError
from rlexp.studies import restaurant_fidelity
from tests.reports import synthetic
from tests.reports.synthetic import Place


def line(row: str, quantity: str, measured: float, reference: float, tolerance: float) -> dict[str, Any]:
    low, high = reference - tolerance, reference + tolerance
    return {
        "row": row,
        "quantity": quantity,
        "measured": measured,
        "reference": reference,
        "tolerance": tolerance,
        "lowest": low,
        "highest": high,
        "inside": low <= measured <= high,
        "table_sd": 0.25 if quantity == "turns" else None,
        "reference_error": 1.05 if row == "goals" else None,
    }


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    result: dict[str, Any] = {
        "database": "shipped",
        "ontology": "shipped",
        "tables": 24,
        "dialogues_per_table": 1000,
        "titles": {"hdc": "handcrafted policy", "goals": "what users want"},
        "lines": [
            line("hdc", "turns", 8.40, 8.43, 0.15),
            line("hdc", "user acts: inform %", 24.5, 24.3, 1.0),
            line("goals", "area: centre", 33.0, 31.5, 2.0),
        ],
    }

    def measure(**arguments: Any) -> dict[str, Any]:
        result["given"] = arguments
        return result

    monkeypatch.setattr(restaurant_fidelity, "measure", measure)
    return result


def test_all_inside(place: Place, measured: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert place.report("restaurant_fidelity", "tables=8", "dialogues=100", "--strict") == 0
    given = measured["given"]
    assert (given["tables"], given["dialogues"]) == (8, 100) and given["processes"] >= 1
    printed = capsys.readouterr().out
    assert "3 of 3 figures within tolerance; 24 confusion tables x 1,000 dialogues a row" in printed
    assert "1 more" in printed and "user acts" not in printed
    markdown = (place.outputs / "reports" / "restaurant_fidelity" / "restaurant_fidelity.md").read_text()
    assert "| turns | 8.40 | 0.25 | 8.43 | 8.28 to 8.58 | inside |" in markdown
    assert "| area: centre | 33.00 |  | 31.5 (s.e. 1.1) | 29.50 to 33.50 | inside |" in markdown
    before = synthetic.folder_bytes(place.outputs)
    place.report("restaurant_fidelity")
    assert synthetic.folder_bytes(place.outputs) == before


def test_outside(place: Place, measured: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    measured["lines"][1] = line("hdc", "user acts: inform %", 30.0, 24.3, 1.0)
    assert place.report("restaurant_fidelity") == 0
    assert place.report("restaurant_fidelity", "--strict") == 1
    assert "user acts: inform %" in capsys.readouterr().out
    folder = place.outputs / "reports" / "restaurant_fidelity"
    assert "OUTSIDE" in (folder / "restaurant_fidelity.md").read_text()
    assert (
        "hdc,user acts: inform %,30,,24.3,23.3,25.3,False" in (folder / "restaurant_fidelity.csv").read_text()
    )


def test_another_database_has_files_of_its_own(place: Place, measured: dict[str, Any]) -> None:
    measured["database"] = "Real.db"
    place.report("restaurant_fidelity", "database=Real.db")
    assert (place.outputs / "reports" / "restaurant_fidelity" / "restaurant_fidelity_Real.md").is_file()


@pytest.mark.parametrize(
    ("argument", "said"),
    [("table=2", "did you mean 'tables'"), ("tables=two", "whole number"), ("more", "one argument too many")],
)
def test_bad_arguments(place: Place, argument: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        place.report("restaurant_fidelity", argument)


def test_reports_import_neither_torch_nor_hydra_nor_matplotlib() -> None:
    modules = [
        "comparison",
        "definition",
        "fidelity",
        "figure",
        "learning_curve",
        "load",
        "metrics",
        "publish",
    ]
    modules += ["render", "style", "sweep_file", "terminal_table", "text"]
    code = "import sys, rlexp.cli.report, rlexp.cli.sweep; "
    code += f"from rlexp.reports import {', '.join(modules)}; "
    code += "print([name for name in ('torch', 'hydra', 'matplotlib', 'gymnasium') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_command_line_and_sweeps_import_no_pandas() -> None:
    code = "import sys, rlexp.cli.report, rlexp.cli.sweep; "
    code += "rlexp.cli.report.main([]); print('pandas' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "False"
