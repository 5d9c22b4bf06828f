"""No link in a run folder is followed, whenever it is put there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlexp.errors import UsageError
from rlexp.reports import style
from rlexp.runs import checkpoint
from rlexp.runs import folder as run_folder
from rlexp.system import files


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder that is none of the run's."""
    found = tmp_path / "victim"
    (found / "000000000001").mkdir(parents=True)
    (found / ".hidden").mkdir()
    (found / ".hidden" / "file").write_text("{}\n")
    (found / "file").write_text("{}\n")
    return found


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder, below a link of the user's own."""
    (tmp_path / "elsewhere" / "seed=0").mkdir(parents=True)
    (tmp_path / "outputs").symlink_to("elsewhere")
    return tmp_path / "outputs" / "seed=0"


def _content(top: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(top)): path.read_bytes() if path.is_file() else b"" for path in top.rglob("*")
    }


def _set_aside(run: Path) -> None:
    (run / "metrics.jsonl").write_text("{}\n{}\n")
    run_folder.JsonlWriter(run / "metrics.jsonl", 3)


def _draw(run: Path) -> None:
    with style.figure_style():
        figure, _ = style.new_figure(2, 2)
        style.save(figure, run / "learning_curve")


ACTS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "rows": ("metrics.jsonl", lambda run: run_folder.JsonlWriter(run / "metrics.jsonl").append({"a": 1})),
    "rows set aside": ("discarded.jsonl", _set_aside),
    "lock": (".lock", lambda run: run_folder.claimed(run).__enter__()),
    "record": (f".record.json.{os.getpid()}", lambda run: run_folder.write_record(run, {"status": "x"})),
    "picture": (".learning_curve.svg", _draw),
}


@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize("target", ["file", "missing"])
def test_nothing_is_written_through_a_link(
    name: str, target: str, run: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the link came after the folder had been looked through.
    monkeypatch.setattr(run_folder, "validate", lambda _: None)
    before = _content(victim)
    link, act = ACTS[name]
    (run / link).symlink_to(victim / target)
    with pytest.raises(UsageError, match="is a link"):
        act(run)
    assert _content(victim) == before


@pytest.mark.parametrize(
    "read", [run_folder.read_record, lambda run: run_folder.read_jsonl(run / "record.json")]
)
def test_nothing_is_read_through_a_link(
    read: Callable[[Path], Any], run: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "validate", lambda _: None)
    (run / "record.json").symlink_to(victim / "file")
    with pytest.raises(UsageError, match="is a link"):
        read(run)


def test_a_record_that_replaces_a_link_leaves_its_target_alone(run: Path, victim: Path) -> None:
    (run / "record.json").symlink_to(victim / "file")
    run_folder.write_record(run, {"status": "running"})
    assert (victim / "file").read_text() == "{}\n"
    assert run_folder.read_record(run)["status"] == "running"


DEEP: dict[str, Callable[[Path, Path], Any]] = {
    "open": lambda root, run: files.open_file(root / "000000000001" / "file", "wb", run),
    "make": lambda root, run: files.make_folder(root / "new", run),
    "rename": lambda root, run: files.rename(root / "000000000001", "damaged", run),
    "unlink": lambda root, run: files.unlink(root / "file", run),
    "delete": lambda root, run: files.remove_tree(root / "000000000001", run),
    "list": lambda root, run: files.names(root, run),
}


@pytest.mark.parametrize("name", DEEP)
def test_no_link_is_followed_on_the_way(name: str, run: Path, victim: Path) -> None:
    before = _content(victim)
    (run / "checkpoints").symlink_to(victim)
    with pytest.raises(UsageError, match="checkpoints: is a link"):
        DEEP[name](run / "checkpoints", run)
    assert _content(victim) == before


def test_no_checkpoint_is_written_read_or_deleted_through_a_link(run: Path, victim: Path) -> None:
    before = _content(victim)
    root = run / "checkpoints"
    root.symlink_to(victim)
    with pytest.raises(UsageError, match="is a link"):
        checkpoint.save(root, {"a": 1}, 1, keep_last=1)
    with pytest.raises(UsageError, match="is a link"):
        checkpoint.available(root)
    assert _content(victim) == before


def test_a_checkpoint_that_is_a_link_is_neither_read_nor_emptied(run: Path, victim: Path) -> None:
    elsewhere = checkpoint.save(victim / "checkpoints", {"a": 1}, 1, keep_last=1)
    before = _content(victim)
    root = run / "checkpoints"
    root.mkdir()
    link = root / elsewhere.name
    link.symlink_to(elsewhere)
    with pytest.raises((UsageError, checkpoint.CheckpointError), match="is a link"):
        checkpoint.load(link)
    for timesteps in (2, 3):
        checkpoint.save(root, {"a": 1}, timesteps, keep_last=1)
    assert _content(victim) == before


def test_deleting_a_folder_deletes_the_links_in_it_and_nothing_behind_them(run: Path, victim: Path) -> None:
    before = _content(victim)
    root = run / "checkpoints"
    files.make_folder(root, run)
    files.make_folder(root / "1", run)
    (root / "1" / "link").symlink_to(victim)
    (root / "2").symlink_to(victim)
    files.remove_tree(root / "1", run)
    files.remove_tree(root / "2", run)
    assert files.names(root, run) == ["2"]
    assert _content(victim) == before


def test_a_folder_that_is_a_link_is_not_made_again(run: Path, victim: Path) -> None:
    (run / "checkpoints").symlink_to(victim)
    with pytest.raises(UsageError, match="is a link"):
        files.make_folder(run / "checkpoints", run)


@pytest.mark.parametrize("mode", ["rb", "wb", "ab", "r+"])
def test_a_pipe_does_not_hang(mode: str, run: Path) -> None:
    os.mkfifo(run / "record.json")
    with pytest.raises(UsageError, match="not a regular file"):
        files.open_file(run / "record.json", mode)


@pytest.mark.parametrize(
    "link", ["checkpoints", "metrics.jsonl", "wandb", "tensorboard", "checkpoints/1/state.json", "model.zip"]
)
def test_a_folder_with_a_link_is_rejected(link: str, run: Path, victim: Path) -> None:
    (run / link).parent.mkdir(parents=True, exist_ok=True)
    (run / link).symlink_to(victim / "file")
    with pytest.raises(UsageError, match=f"{link} is a link") as caught:
        files.validate(run)
    assert "\n" not in str(caught.value)


def test_links_of_wandb_that_stay_inside_are_left_alone(run: Path, victim: Path) -> None:
    inside = run / "wandb" / "offline-run-1" / "logs"
    inside.mkdir(parents=True)
    (run / "wandb" / "latest-run").symlink_to("offline-run-1")
    (inside / "debug-core.log").symlink_to(victim / "file")  # W&B's own, in runs of earlier versions
    files.validate(run)
    (run / "wandb" / "offline-run-2").symlink_to(victim)
    with pytest.raises(UsageError, match="offline-run-2 is a link"):
        files.validate(run)
