"""Figures: files, curves as numbers, sensitivity."""

from __future__ import annotations

import pytest

from rlexp.reports import style, sweep_file
from rlexp.reports.load import curves
from tests.reports import synthetic
from tests.reports.synthetic import Place


def test_files_and_numbers(place: Place) -> None:
    place.fill()
    assert place.report("curves", "--strict") == 0
    folder = place.outputs / "reports" / "curves"
    assert {path.name for path in folder.iterdir()} == {f"curves.{e}" for e in ("md", "csv", "svg", "png")}
    lines = (folder / "curves.csv").read_text().splitlines()
    assert lines[1] == "Success rate,PPO,success_rate,%,100,4,4,54,4.320493799,50 52 54 60"
    assert len(lines) == 1 + 3 * 20
    markdown = (folder / "curves.md").read_text()
    assert (
        "![Curves](curves.svg)" in markdown
        and "band: its 95 % bootstrap interval, from 5 seeds on" in markdown
    )
    svg = (folder / "curves.svg").read_text()
    assert "<dc:date>" not in svg


def test_a_line_in_two_panels_is_named_once_beside_them(place: Place) -> None:
    def legends() -> int:
        place.report("curves")
        return (place.outputs / "reports" / "curves" / "curves.svg").read_text().count('<g id="legend_')

    path = place.sweeps / "curves.yaml"
    place.fill()
    assert legends() == 1
    path.write_text(
        path.read_text().replace(
            'unit: "%"\n      references', 'unit: "%"\n      rows: [LCPO]\n      references'
        )
    )
    assert legends() == 2


def test_every_row_of_a_shipped_table_is_in_the_figure(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for name in sweep_file.available():
        sweep = sweep_file.load(name)
        every = {row.label for row in sweep.rows}
        drawn = [{*panel.rows, *panel.levels} if panel.rows else every for panel in sweep.panels]
        assert not drawn or set().union(*drawn) == every, name


def test_the_parts_of_an_episode_are_counted_from_one(place: Place) -> None:
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    style.counted_axis(axes, 1, 12, "month")
    assert list(axes.get_xticks()) == list(range(1, 13)) and axes.get_xlim()[0] > 0


def test_sensitivity(place: Place) -> None:
    place.fill()
    place.report("curves")
    markdown = (place.outputs / "reports" / "curves" / "curves.md").read_text()
    # PPO stays at 54 %; LCPO's mean is 60 at 100, 70 at 200, ... and about 100 from 500 on.
    row = next(line for line in markdown.splitlines() if line.startswith("| both |"))
    assert float(row.split("|")[3]) == pytest.approx((6 + 16 + 26 + 36 + 16 * 46) / 20, abs=0.1)
    assert "| none | PPO / PPO | 0.0 | +" in markdown


def test_catching_up(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.fill()
    path = place.sweeps / "curves.yaml"
    path.write_text(
        path.read_text()
        + "  sample_efficiency: [{of: LCPO, reaches: PPO, metric: success_rate, x: episodes}]\n"
    )
    place.report("curves")
    # PPO stands at 54 %, so that both are there at the first evaluation; it never reaches LCPO's last score.
    row = "| LCPO / PPO | 0.54 | 100 | 100 | 1.00 |"
    assert row in (place.outputs / "reports" / "curves" / "curves.md").read_text()
    assert "LCPO reaches the last score of PPO, 0.54, after 100 episodes" in capsys.readouterr().out
    path.write_text(path.read_text().replace("of: LCPO, reaches: PPO", "of: PPO, reaches: LCPO"))
    place.report("curves")
    assert (
        "| PPO / LCPO | 1.00 | > 2000 |" in (place.outputs / "reports" / "curves" / "curves.md").read_text()
    )


def test_incomplete_figure_is_strict(place: Place) -> None:
    runs = place.fill()
    (runs[0].folder / "record.json").unlink()
    assert place.report("curves", "--strict") == 1
    assert "- PPO, seed 3: not trained" in (place.outputs / "reports" / "curves" / "curves.md").read_text()


def test_curves_of_unequal_grids_meet_on_the_first() -> None:
    def rows(places: list[int]) -> list[dict[str, float]]:
        return [{"episodes": one, "success_rate": one / 1000} for one in places]

    found = synthetic.loaded(("a", 0, rows([100, 200, 300, 400]), {}), ("a", 1, rows([50, 150, 350]), {}))
    x, stacked = curves(found, "a", "success_rate")
    assert x.tolist() == [100, 200, 300]
    assert stacked[1].tolist() == pytest.approx([0.1, 0.2, 0.3])


@pytest.mark.slow
def test_shipped_sweeps_render(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sweep that is shipped can be planned; a table and a figure are drawn from synthetic runs."""
    monkeypatch.undo()
    from rlexp.cli import report
    from rlexp.sweep.plan import expected_runs

    rendered = ("table2", "figure4")
    for name in sweep_file.available():
        sweep = sweep_file.load(name)
        assert sweep.columns or sweep.panels, name
        runs = expected_runs(sweep, [f"output_dir={place.outputs}"], synthetic.compose)
        for run in runs if name in rendered else []:
            if not run.folder.exists():
                synthetic.write_run(run, synthetic.learning_curve(0.3, 0.95))
    for name in rendered:
        assert report.main([name, "--strict", f"output_dir={place.outputs}"], synthetic.compose) == 0
