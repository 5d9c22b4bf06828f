"""The learning curve of one run, on the terminal and as an image."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from rlexp.reports import learning_curve, terminal_plot
from tests.reports import synthetic
from tests.reports.synthetic import Place


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


def test_evaluated_once_training_is_drawn(place: Place) -> None:
    folder = place.fill()[0].folder
    (folder / "evaluations.jsonl").write_text(json.dumps(synthetic.row(100, 0.5)) + "\n")
    rows = [{"timesteps": 10 * n, "episodes": n, "rollout/ep_rew_mean": 1.5 * n} for n in range(1, 5)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "training return, last 6.0" in show(folder)
    record = json.loads((folder / "record.json").read_text())
    (folder / "record.json").write_text(json.dumps({**record, "env": "datacenter"}))
    rows = [{"timesteps": 672 * n, "episodes": n, "power_kw": 100.0 - n} for n in range(1, 5)]
    (folder / "periods.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "power_kw in training, last 96.0" in show(folder)


def test_plot_by_hand() -> None:
    lines = terminal_plot.plot([0, 1, 2], [0, 1, 0], "t", "x", 13, 6, limits=(0, 1), unicode=False)
    assert lines[0] == "t"
    assert lines[1].startswith("  1 |") and lines[3].startswith("  0 |*") and lines[3].endswith("*")
    flat = terminal_plot.plot([5, 5], [2, 2], "t", "x")
    assert len(flat) == 12


@pytest.mark.parametrize(
    ("budget", "hint"),
    [
        ("total_timesteps: 900\ntotal_episodes: null", "evaluation.every_timesteps=45 draws one"),
        ("total_timesteps: null\ntotal_episodes: 40", "evaluation.every_episodes=2 draws one"),
    ],
)
def test_the_hint_counts_in_the_unit_of_the_budget(tmp_path: Path, budget: str, hint: str) -> None:
    from rlexp.reports.learning_curve import _hint

    rest = "seed: 0\nalgo: {name: ppo}\nenv: {name: gym}\nhardware: {}\n"
    (tmp_path / "config.yaml").write_text(f"{budget}\n{rest}")
    assert hint in _hint(tmp_path, {"timesteps": 900, "episodes": 40})
    assert _hint(tmp_path / "nowhere", {}) == ""
