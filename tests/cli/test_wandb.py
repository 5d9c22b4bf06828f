"""``rlexp wandb show``: W&B's file of a run, read without W&B; the file may be hostile."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import pytest

from rlexp.cli import main
from tests.conftest import CARTPOLE, only_run

_RUN = [argument for argument in CARTPOLE if argument != "logger=none"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*_RUN, "tags=[mine]", "evaluation.every_timesteps=128"]) == 0
    return only_run(folder)


def framed(message: bytes) -> bytes:
    """One message of W&B's log."""
    piece = b"\x01" + message
    return struct.pack("<IH", zlib.crc32(piece), len(message)) + piece


def history(text: str) -> bytes:
    """A row of one column, whose value is this JSON text."""
    from wandb.proto import wandb_internal_pb2

    record = wandb_internal_pb2.Record()
    item = record.history.item.add()
    item.key, item.value_json = "x", text
    return framed(record.SerializeToString())


def test_shows_config_summary_columns_and_a_curve(run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["wandb", "show", str(run)]) == 0
    shown = capfd.readouterr().out
    last = json.loads((run / "evaluations.jsonl").read_text().splitlines()[-1])["return_mean"]
    for part in (
        "project   rlexp",
        "tags      mine",
        "algo.n_steps ",
        "ended with exit code 0",
        "eval_by_update/",
    ):
        assert part in shown, part
    assert f"eval/return_mean, last {last:.4g}" in shown.replace(".0\n", "\n")
    assert "train/loss" in shown and "timesteps" in shown.splitlines()[-1]
    (offline,) = run.glob("wandb/offline-run-*")
    assert main(["wandb", "show", str(offline), "curve=train/loss"]) == 0
    assert "train/loss, last" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["wandb"], "rlexp wandb show RUN"),
        (["wandb", "shwo", "RUN"], "did you mean 'show'?"),
        (["wandb", "show"], "needs a run folder"),
        (["wandb", "show", "nowhere"], "no such folder"),
        (["wandb", "show", "."], "no W&B run here"),
        (["wandb", "show", "RUN", "curve=eval/return_men"], "did you mean 'eval/return_mean'?"),
    ],
)
def test_answers_in_one_line(
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([str(run) if word == "RUN" else word for word in arguments]) == 2
    shown = capfd.readouterr()
    assert said in shown.err and shown.err.count("\n") == 1 and shown.out == ""


HEAD = b":W&B\xe1\xbe\x00"
HOSTILE = {
    "empty": b"",
    "of something else": b"\x80\x04\x95" + b"x" * 200,
    "a wrong checksum": HEAD + framed(b"\x08\x01")[:-1] + b"\x02",
    "no message": HEAD + framed(b"\xff" * 50),
    "no JSON": HEAD + history("{"),
    "nested without end": HEAD + history("[" * 30_000 + "]" * 30_000),
    "a number without end": HEAD + history("1" * 20_000),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: bytes
) -> None:
    (tmp_path / "run-x.wandb").write_bytes(content)
    assert main(["wandb", "show", str(tmp_path)]) == 2
    shown = capfd.readouterr()
    assert "damaged" in shown.err and shown.err.count("\n") == 1 and shown.out == ""


def test_text_steers_no_terminal_and_a_cut_off_file_is_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from wandb.proto import wandb_internal_pb2

    record = wandb_internal_pb2.Record()
    record.run.display_name = "\x1b[2J[red]"
    content = HEAD + framed(record.SerializeToString()) + history("1") + history("2")
    (tmp_path / "run-x.wandb").write_bytes(content[:-3])
    assert main(["wandb", "show", str(tmp_path)]) == 0
    shown = capfd.readouterr().out
    assert "\\x1b[2J[red]" in shown and "\x1b" not in shown
    assert "not ended, 1 rows; the file ends within a message" in shown


def test_no_link_is_followed(run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (path,) = run.glob("wandb/*/*.wandb")
    (tmp_path / "run-x.wandb").symlink_to(path)
    assert main(["wandb", "show", str(tmp_path)]) == 2
    assert "link" in capfd.readouterr().err
