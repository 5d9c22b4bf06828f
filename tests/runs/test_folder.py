"""Records and rows survive kills."""

from __future__ import annotations

import fcntl
import hashlib
import json
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rlexp.errors import UsageError
from rlexp.runs import folder as run_folder


def test_rows_after_the_checkpoint_are_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    writer = run_folder.JsonlWriter(path)
    writer.append({"step": 1})
    kept = writer.extent().length
    writer.append({"step": 2})
    writer.append({"step": 3})
    writer.close()
    again = run_folder.JsonlWriter(path, keep_bytes=kept)
    again.append({"step": 2, "again": True})
    again.close()
    assert run_folder.read_jsonl(path) == [{"step": 1}, {"step": 2, "again": True}]
    assert run_folder.read_jsonl(tmp_path / run_folder.DISCARDED) == [{"step": 2}, {"step": 3}]


def test_the_extent_is_that_of_the_file_and_carried_over(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    for number in range(3):  # each attempt hashes what it finds once, then carries the hash along
        writer = run_folder.JsonlWriter(path, path.stat().st_size if number else 0)
        writer.append({"step": number})
        writer.append({"name": "é"})
        extent = writer.extent()
        writer.close()
        content = path.read_bytes()
        assert extent == (len(content), hashlib.sha256(content).hexdigest())
    assert run_folder.mismatch(path, extent) is None
    with path.open("a") as file:
        file.write("later rows\n")
    assert run_folder.mismatch(path, extent) is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda path: path.unlink(), "metrics.jsonl is missing"),
        (lambda path: path.write_bytes(b""), "metrics.jsonl has lost rows: 0 bytes of 22"),
        (
            lambda path: path.write_bytes(path.read_bytes()[:-1]),
            "metrics.jsonl has lost rows: 21 bytes of 22",
        ),
        (lambda path: path.write_text(path.read_text().replace("1", "7")), "metrics.jsonl has been changed"),
    ],
)
def test_rows_that_are_not_what_they_were(tmp_path: Path, change: Any, problem: str) -> None:
    path = tmp_path / "metrics.jsonl"
    writer = run_folder.JsonlWriter(path)
    for step in (1, 2):
        writer.append({"s": step + 0.5})
    extent = run_folder.Extent(22, writer.extent().sha256)
    assert extent == writer.extent()
    writer.close()
    change(path)
    assert run_folder.mismatch(path, extent) == problem


@pytest.mark.parametrize(
    "content", [b'{"a": 1}\n\xff\n', b"{}\n[1]\n", b"{}\nnull\n", b"{}\n" + b"[" * 90_000 + b"\n"]
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(content)
    with pytest.raises(UsageError, match="line 2"):
        run_folder.read_jsonl(tmp_path / "metrics.jsonl")


@contextmanager
def _small_files(limit: int) -> Iterator[None]:
    """As on a disk that is full: no file grows beyond some bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_on_a_full_disk_rows_stay_whole(tmp_path: Path) -> None:
    writer = run_folder.JsonlWriter(tmp_path / "metrics.jsonl")
    writer.append({"step": 1})
    with _small_files(20), pytest.raises(OSError, match=r"File too large.*metrics\.jsonl"):
        writer.append({"step": 2, "text": "x" * 100})
    assert run_folder.read_jsonl(tmp_path / "metrics.jsonl") == [{"step": 1}]
    writer.append({"step": 3})
    extent = writer.extent()
    writer.close()
    assert run_folder.mismatch(tmp_path / "metrics.jsonl", extent) is None
    assert run_folder.read_jsonl(tmp_path / "metrics.jsonl") == [{"step": 1}, {"step": 3}]


def test_on_a_full_disk_the_record_stays_the_old_one(tmp_path: Path) -> None:
    run_folder.write_record(tmp_path, {"status": "running"})
    with _small_files(20), pytest.raises(OSError, match=r"File too large.*record\.json"):
        run_folder.write_record(tmp_path, {"status": "finished", "text": "x" * 100})
    assert run_folder.read_record(tmp_path) == {"status": "running"}
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_a_row_cut_off_by_a_kill_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"st')
    assert run_folder.read_jsonl(path) == [{"step": 1}]


def test_damage_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    with pytest.raises(UsageError, match="line 2"):
        run_folder.read_jsonl(path)


def test_not_a_number_never_reaches_a_row(tmp_path: Path) -> None:
    writer = run_folder.JsonlWriter(tmp_path / "metrics.jsonl")
    with pytest.raises(ValueError, match="JSON"):
        writer.append({"loss": float("nan")})


def test_a_run_belongs_to_one_process(tmp_path: Path) -> None:
    rejected = pytest.raises(UsageError, match="another process")
    with run_folder.claimed(tmp_path), rejected, run_folder.claimed(tmp_path):
        pass
    with run_folder.claimed(tmp_path):
        pass


def test_provenance_names_what_produced_the_numbers() -> None:
    facts = run_folder.provenance()
    assert facts["versions"]["torch"] and facts["versions"]["python"]
    json.dumps(facts)


def test_a_running_record_that_nobody_holds_is_dead(tmp_path: Path) -> None:
    entry = {"status": "running"}
    assert run_folder.status(tmp_path, entry) == "dead"
    with (tmp_path / run_folder.LOCK).open("w") as lock:
        assert run_folder.status(tmp_path, entry) == "dead"
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run_folder.status(tmp_path, entry) == "running"
        assert run_folder.status(tmp_path, {"status": "interrupted"}) == "interrupted"
    assert run_folder.status(tmp_path, entry) == "dead"


def test_looking_at_a_run_does_not_keep_anybody_from_it(tmp_path: Path) -> None:
    lock = (tmp_path / run_folder.LOCK).open("w")
    fcntl.flock(lock, fcntl.LOCK_SH)  # as while its status is read
    threading.Timer(0.1, lock.close).start()
    with run_folder.claimed(tmp_path):
        assert run_folder.in_use(tmp_path)
    with (
        run_folder.claimed(tmp_path),
        pytest.raises(UsageError, match="another process"),
        run_folder.claimed(tmp_path),
    ):
        pass


def test_the_end_of_a_process_that_could_not_say_it_is_written_by_another(tmp_path: Path) -> None:
    running = {
        "schema_version": 1,
        "status": "running",
        "seed": 0,
        "algo": "r2d2",
        "env": "e",
        "variant": "v",
    }
    run_folder.write_record(tmp_path, running)
    with run_folder.claimed(tmp_path), pytest.raises(UsageError, match="another process"):
        run_folder.end_lost(tmp_path, "it goes on")
    run_folder.end_lost(tmp_path, "Ray has ended")
    run_folder.end_lost(tmp_path, "later")
    entry = run_folder.read_record(tmp_path)
    assert entry["status"] == "failed" and entry["error"] == "Ray has ended"
