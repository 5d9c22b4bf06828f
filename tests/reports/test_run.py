"""The learning curve of one run and the comparison of many."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from rlexp.reports import learning_curve, terminal_plot
from tests.reports import synthetic
from tests.reports.synthetic import Place, lcpo


def show(folder: Path, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    learning_curve.show(folder, Console(file=stream, width=80))
    stream.flush()
    return raw.getvalue().decode(encoding)


def test_success_curve(place: Place) -> None:
    folder = place.fill()[-1].folder
    printed = show(folder)
    assert printed.startswith("success rate (%), last 100.0\n")
    assert "training dialogues" in printed and "\x1b" not in printed
    assert len(printed.splitlines()) == 12 and max(map(len, printed.splitlines())) <= 60
    images = {path.name: path.read_bytes() for path in folder.glob("learning_curve.*")}
    assert set(images) == {"learning_curve.svg", "learning_curve.png"}
    show(folder)
    assert {path.name: path.read_bytes() for path in folder.glob("learning_curve.*")} == images


def test_plain_ascii_where_the_stream_takes_no_more(place: Place) -> None:
    printed = show(place.fill()[-1].folder, "ascii")
    assert printed.isascii() and "*" in printed


def test_return_curve_where_there_is_no_success(place: Place) -> None:
    folder = place.fill()[0].folder
    rows = [{"episodes": n, "timesteps": 1000 * n, "n": 5, "return_mean": -200.0 + n} for n in range(1, 60)]
    (folder / "evaluations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = show(folder)
    assert printed.startswith("return, last -141.0") and "training steps" in printed


@pytest.mark.parametrize(("rows", "said"), [(0, "nothing was evaluated"), (1, "evaluated once")])
def test_too_few_evaluations(place: Place, rows: int, said: str) -> None:
    folder = place.fill()[0].folder
    line = json.dumps(synthetic.row(100, 0.5)) + "\n"
    (folder / "evaluations.jsonl").write_text(line * rows)
    assert said in show(folder)
    assert not list(folder.glob("learning_curve.*"))


def test_plot_by_hand() -> None:
    lines = terminal_plot.plot([0, 1, 2], [0, 1, 0], "t", "x", 13, 6, limits=(0, 1), unicode=False)
    assert lines[0] == "t"
    assert lines[1].startswith("  1 |") and lines[3].startswith("  0 |*") and lines[3].endswith("*")
    flat = terminal_plot.plot([5, 5], [2, 2], "t", "x")
    assert len(flat) == 12


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
    write(place, ["algo=tam", "seed=0"], 0.9)  # lies there, too, but was no job of the multirun
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
    from rlexp.config.paths import reported, run_dir
    from rlexp.reports.definition import Expected

    arguments = [*arguments, f"output_dir={place.outputs}"]
    cfg = synthetic.compose(arguments)
    expected = Expected("", int(cfg.seed), run_dir(cfg), tuple(arguments), reported(cfg))
    synthetic.write_run(expected, lambda *_: level)
    assert lcpo(100, 3) < 1
    return expected.folder
