"""The comparison of many runs: of a folder, or of a multirun."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlexp.config.paths import reported, run_dir
from rlexp.reports.definition import Expected
from tests.reports import synthetic
from tests.reports.synthetic import Place, lcpo


def test_comparison_of_a_folder(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    for rate, level in ((1e-4, 0.6), (1e-3, 0.9), (1e-2, 0.7)):
        for seed in range(3):
            arguments = ["algo=lcpo", f"algo.learning_rate={rate}", f"seed={seed}"]
            write(place, arguments, level + seed / 100)
    assert place.report("sweep", str(place.outputs / "runs"), "--strict") == 0
    printed = capsys.readouterr().out
    assert "algo.learning_rate" in printed and "algo.n_steps" not in printed
    report = place.outputs / "runs" / "report"
    lines = (report / "sweep.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["0.001", "0.01", "0.0001"]
    assert lines[1].startswith("0.001,success_rate,3,0,0.91,0.01,")
    assert (report / "sweep.svg").is_file() and (report / "sweep.png").is_file()
    before = synthetic.folder_bytes(report)
    place.report("sweep", str(place.outputs / "runs"))
    assert synthetic.folder_bytes(report) == before


def test_comparison_of_a_multirun_with_an_unfinished_run(place: Place) -> None:
    folders = [
        write(place, [f"algo={name}", f"seed={seed}"], 0.5) for name in ("ppo", "lcpo") for seed in (0, 1)
    ]
    write(place, ["algo=tam", "seed=0"], 0.9)  # lies there, too, but was not a job of the multirun
    record = json.loads((folders[0] / "record.json").read_text())
    (folders[0] / "record.json").write_text(json.dumps({**record, "status": "interrupted"}))
    multirun = place.outputs / "multirun"
    multirun.mkdir()
    (multirun / "runs.jsonl").write_text("".join(json.dumps({"run": str(one)}) + "\n" for one in folders))
    assert place.report("sweep", str(multirun)) == 0
    assert place.report("sweep", str(multirun), "--strict") == 1
    markdown = (multirun / "report" / "sweep.md").read_text()
    assert "| lcpo | 2/2 |" in markdown and "| ppo | 1/2 |" in markdown and "tam" not in markdown


def write(place: Place, arguments: list[str], level: float) -> Path:
    arguments = [*arguments, f"output_dir={place.outputs}"]
    cfg = synthetic.compose(arguments)
    expected = Expected("", int(cfg.seed), run_dir(cfg), tuple(arguments), reported(cfg))
    synthetic.write_run(expected, lambda *_: level)
    assert lcpo(100, 3) < 1
    return expected.folder
