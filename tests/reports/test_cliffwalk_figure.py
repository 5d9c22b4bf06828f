"""Blind Cliffwalk: the files and the text made of a measurement."""

from __future__ import annotations

from pathlib import Path

from rlexp.reports import cliffwalk_figure
from rlexp.studies import cliffwalk


def test_numbers_figures_and_text(tmp_path: Path) -> None:
    shown = cliffwalk_figure.publish(cliffwalk.measure(n_states=4, seeds=2), tmp_path)
    assert "initial priorities: max; median updates until solved, 2 seeds" in shown
    assert len([line for line in shown.splitlines() if line.startswith("oracle ")]) == 2
    names = {f"{initial}.{ending}" for initial in ("max", "exact") for ending in ("csv", "svg", "png")}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert "mathdefault" not in (tmp_path / "max.svg").read_text(), "powers are labelled as plain numbers"
    lines = (tmp_path / "max.csv").read_text().splitlines()
    assert lines[0] == "order,states,seed,updates" and len(lines) == 1 + 6 * 3 * 2
    first = cliffwalk.updates_until_solved("uniform", 2, 0)
    assert lines[1] == f"uniform,2,0,{first}"
