"""Tables from synthetic run folders: numbers, verdicts, completeness, repetition."""

from __future__ import annotations

import json
import math

import pytest
from omegaconf import OmegaConf

from rlexp import stats
from rlexp.errors import UsageError
from rlexp.reports import metrics
from rlexp.reports.load import load_runs
from rlexp.sweep.plan import expected_runs
from tests.reports import synthetic
from tests.reports.synthetic import PPO, Place


def table(place: Place) -> dict[tuple[str, str], metrics.Metric]:
    built = metrics.build(place.load(), load_runs(place.expected()))
    return {(metric.row.label, metric.column.name): metric for line in built.metrics for metric in line}


def test_numbers_by_hand(place: Place) -> None:
    place.fill()
    found = table(place)
    metric = found["PPO", "success"]
    assert metric.values == pytest.approx([50, 52, 54, 60])
    assert metric.mean == pytest.approx(54.0)
    assert metric.std == pytest.approx(math.sqrt((16 + 4 + 0 + 36) / 3))
    assert metric.iqm == pytest.approx(53.0)  # 52 and 54 stay
    assert metric.iqm_interval == stats.iqm_interval(metric.values)
    assert (metric.n, metric.expected, metric.complete) == (4, 4, True)
    assert found["LCPO", "success"].mean == pytest.approx(70.0)
    assert found["LCPO", "reached"].mean == pytest.approx(300.0)
    assert found["PPO", "reached"].mean == math.inf
    assert found["LCPO", "turns"].mean == pytest.approx(7.0, abs=0.1)


def test_verdicts(place: Place) -> None:
    place.fill()
    found = table(place)
    assert found["PPO", "success"].verdict == metrics.WORSE  # the paper's 60 is above our interval
    assert found["LCPO", "success"].verdict == metrics.INSIDE
    assert found["LCPO", "reached"].verdict == metrics.WORSE  # 300 dialogues, the paper 260
    assert found["PPO", "reached"].verdict == metrics.BEYOND
    assert found["PPO", "turns"].verdict == ""  # the paper prints none


def test_ratio_to_another_row(place: Place) -> None:
    runs = place.fill()
    for run in runs:
        synthetic.write_run(run, lambda *_: 0.5, train_s=40.0 if run.label == "PPO" else 80.0)
    found = table(place)
    base = found["PPO", "time"].mean
    assert found["LCPO", "ratio"].mean == pytest.approx(found["LCPO", "time"].mean / base)
    assert found["PPO", "ratio"].mean == pytest.approx(1.0) and not found["PPO", "ratio"].mean_interval.known


def test_differences(place: Place) -> None:
    place.fill()
    built = metrics.build(place.load(), load_runs(place.expected()))
    by_column = {one.column.name: one for one in built.differences}
    assert by_column["success"].value == pytest.approx(16.0)
    assert by_column["success"].improvement == 1.0
    assert by_column["turns"].value < 0 and by_column["turns"].improvement == 1.0  # fewer turns are better
    assert by_column["reached"].value == -math.inf and by_column["reached"].interval.high == -math.inf


def test_files_and_golden_lines(place: Place) -> None:
    place.fill()
    assert place.report("small", "--strict") == 0
    folder = place.outputs / "reports" / "small"
    names = {f"small.{ending}" for ending in ("md", "tex", "csv", "svg", "png")}
    assert {path.name for path in folder.iterdir()} == names | {
        f"small_times.{ending}" for ending in ("md", "tex", "csv")
    }
    markdown = (folder / "small.md").read_text()
    lines = markdown.splitlines()
    assert lines[2:8] == [
        "|  | n | Success @200 (%) | Success @2000 (%) | Turns | Dialogues to 80 % |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| **PPO** | 4/4 | 54.0 ± 4.3 | 54.0 ± 4.3 | 9.8 ± 0.3 | > 2000 |",
        "| *PPO, paper* |  | 60.0 ± 5.0 | 95.16 |  | 9000 |",
        "| **LCPO** | 4/4 | 70.0 ± 1.3 | 100.0 ± 0.0 | 7.0 ± 0.0 | 300 |",
        "| *LCPO, paper* |  | 70 |  |  | 260 |",
    ]
    assert "| PPO | Success @200 (%) | 4/4 | 54.0 ± 4.3 | [51.0, 58.0] | 53.0 | [50.0, 60.0] |" in markdown
    assert "Time" not in markdown and str(place.outputs) not in markdown
    assert "Turns: acts of the system." in markdown and "Seeds 3-6: 4 per row." in markdown
    assert "500 evaluation episodes after every 100 training episodes, actions sampled" in markdown
    assert "PPO & 4/4 & 54.0 $\\pm$ 4.3" in (folder / "small.tex").read_text()
    header, first = (folder / "small.csv").read_text().splitlines()[:2]
    assert header.startswith("row,column,unit,n,expected,mean,std")
    assert first.startswith("PPO,success,%,4,4,54,4.320493799,") and first.endswith("3 4 5 6,50 52 54 60")


def test_repetition_is_byte_identical(place: Place) -> None:
    place.fill()
    for name in ("small", "curves"):
        place.report(name)
    first = synthetic.folder_bytes(place.outputs / "reports")
    for name in ("small", "curves"):
        place.report(name)
    assert synthetic.folder_bytes(place.outputs / "reports") == first


def test_times_do_not_change_the_table(place: Place) -> None:
    runs = place.fill()
    place.report("small")
    first = synthetic.folder_bytes(place.outputs / "reports")
    record = json.loads((runs[0].folder / "record.json").read_text())
    (runs[0].folder / "record.json").write_text(json.dumps({**record, "train_s": 999.0, "wall_s": 1e4}))
    place.report("small")
    changed = synthetic.folder_bytes(place.outputs / "reports")
    assert {name for name in first if first[name] != changed[name]} == {
        f"small/small_times.{ending}" for ending in ("md", "tex", "csv")
    }


@pytest.mark.parametrize("status", ["failed", "running", "interrupted"])
def test_incomplete_cell_is_marked_and_strict_fails(
    place: Place, status: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = place.fill()
    synthetic.write_run(runs[1], lambda *_: 0.9, status=status, error="Traceback\nValueError: loss is nan\n")
    assert place.report("small") == 0
    assert place.report("small", "--strict") == 1
    markdown = (place.outputs / "reports" / "small" / "small.md").read_text()
    assert "| **PPO** | 3/4 |" in markdown and "3/4 incomplete" in markdown
    shown = "dead" if status == "running" else status  # nobody holds the run folder
    assert f"- PPO, seed 4: {shown}: ValueError: loss is nan" in markdown
    assert f"missing: PPO, seed 4: {shown}" in capsys.readouterr().out
    assert "PPO,success,%,3,4," in (place.outputs / "reports" / "small" / "small.csv").read_text()


@pytest.mark.parametrize("name", ["small", "curves"])
def test_nothing_trained_names_the_line_that_trains_it_and_writes_nothing(place: Place, name: str) -> None:
    with pytest.raises(UsageError, match=r"no finished run below .*seed 3.*rlexp sweep small"):
        place.report(name, "--strict")
    with pytest.raises(UsageError, match=r"no committed records in .*reference/small.*checkout"):
        place.report(name, "--reference")
    assert not place.outputs.exists()


def test_a_row_without_runs_is_a_row_of_dashes(place: Place) -> None:
    for run in place.expected():
        if run.label != "PPO":
            synthetic.write_run(run, synthetic.lcpo)
    assert place.report("small") == 0
    table = (place.outputs / "reports" / "small" / "small.md").read_text()
    assert "| **PPO** | 0/4 | – | – | – | – |" in table


def test_the_terminal_shows_one_line_per_row_and_everything_on_request(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.fill()
    capsys.readouterr()
    assert place.report("small") == 0
    shown = capsys.readouterr().out
    lines = shown[: shown.index("value ±")].splitlines()
    assert max(map(len, lines)) <= 80 and "IQM" not in "".join(lines)
    assert sum(line.startswith(("LCPO (4/4)", "Success @200 ")) for line in lines) == 1
    assert place.report("small", "--full") == 0
    assert "IQM" in capsys.readouterr().out.partition("value ±")[0]


def test_shortened_runs_never_enter(place: Place) -> None:
    runs = place.fill()
    short = synthetic.compose([*runs[0].overrides, "total_episodes=200"])
    synthetic.write_run(runs[0], lambda *_: 0.99, cfg=short)
    fewer = synthetic.compose([*runs[1].overrides, "evaluation.episodes=20"])
    synthetic.write_run(runs[1], lambda *_: 0.99, cfg=fewer, n=20)
    synthetic.write_run(runs[2], lambda *_: 0.99, n=20)  # says 500, measured 20
    synthetic.write_run(runs[3], lambda *_: 0.99, until=1900)
    reasons = {one.seed: one.reason for one in load_runs(runs).missing}
    assert reasons == {
        3: "another config: total_episodes is 200, not 2000",
        4: "another config: evaluation.episodes is 20, not 500",
        5: "shortened: 20 of 500 evaluation episodes",
        6: "shortened: last evaluation after 1900 of 2000 episodes",
    }


def test_run_of_another_seed_or_damaged_does_not_enter(place: Place) -> None:
    runs = place.fill()
    synthetic.write_run(runs[0], lambda *_: 0.99, cfg=synthetic.compose([*runs[0].overrides, "seed=99"]))
    (runs[1].folder / "record.json").write_text("{")
    (runs[2].folder / "config.yaml").write_text("a: [")
    (runs[3].folder / "evaluations.jsonl").write_text("")
    reasons = {one.seed: one.reason for one in load_runs(runs).missing}
    assert reasons[3] == "seed is 99"
    assert reasons[4].startswith("damaged") and reasons[5].startswith("damaged")
    assert reasons[6] == "no evaluation recorded"


def test_reference_records(place: Place) -> None:
    runs = place.fill()
    assert place.report("small", "--save-reference") == 0
    kept = place.outputs / "reference" / "small" / "ppo" / "seed=3"
    assert {path.name for path in kept.iterdir()} == {"config.yaml", "record.json", "evaluations.jsonl"}
    before = synthetic.folder_bytes(place.outputs / "reports")
    for run in runs:
        for path in run.folder.iterdir():
            path.unlink()
    with pytest.raises(UsageError, match="no finished run"):  # records are read only when asked for
        place.report("small", "--strict")
    assert place.report("small", "--strict", "--reference") == 0
    assert synthetic.folder_bytes(place.outputs / "reports") == before
    assert (
        place.report("curves", "--strict", "--reference") == 0
    )  # borrows the runs, and with them the records


def test_reference_outlives_new_config_keys(place: Place) -> None:
    place.fill()
    place.report("small", "--save-reference")

    def later(arguments: list[str]) -> object:
        cfg = synthetic.compose(arguments)
        OmegaConf.update(cfg, "algo.invented_since", 1, force_add=True)
        return cfg

    runs = expected_runs(place.load(), [f"output_dir={place.outputs}"], later)  # type: ignore[arg-type]
    found = load_runs(runs, place.outputs / "reference" / "small")
    assert not found.missing and "algo.invented_since" in found.notes[0]


def test_output_option(place: Place) -> None:
    place.fill()
    place.report("small", "--output", str(place.outputs / "elsewhere"))
    assert (place.outputs / "elsewhere" / "small.md").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["smal"], "did you mean 'small'"),
        (["small", "seed=3"], "not a setting of rlexp report"),
        (["small", "more"], "one argument too many"),
        (["small", "--reference", "--save-reference"], "choose one"),
        (["run"], "needs the folder of a run"),
        (["run", "nowhere"], "no run here"),
        (["sweep", "nowhere"], "no such folder"),
        (["small", "--stric"], "did you mean '--strict'"),
    ],
)
def test_bad_arguments(place: Place, arguments: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("(", r"\(").replace(".", r"\.")):
        place.report(*arguments)
    assert not place.outputs.exists()


def test_list(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.report() == 0
    printed = capsys.readouterr().out
    assert "small" in printed and "restaurant_fidelity" in printed and "sweep DIR" in printed
    assert sorted(PPO) == [3, 4, 5, 6]
