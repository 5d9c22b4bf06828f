"""Records and rows survive kills."""

from __future__ import annotations

import fcntl
import json
import threading
from pathlib import Path

import pytest

from rlexp import record
from rlexp.errors import UsageError


def test_rows_after_the_checkpoint_are_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    writer = record.JsonlWriter(path)
    writer.append({"step": 1})
    kept = writer.tell()
    writer.append({"step": 2})
    writer.append({"step": 3})
    writer.close()
    again = record.JsonlWriter(path, keep_bytes=kept)
    again.append({"step": 2, "again": True})
    again.close()
    assert record.read_jsonl(path) == [{"step": 1}, {"step": 2, "again": True}]
    assert record.read_jsonl(tmp_path / record.DISCARDED) == [{"step": 2}, {"step": 3}]


def test_a_row_cut_off_by_a_kill_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"st')
    assert record.read_jsonl(path) == [{"step": 1}]


def test_damage_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    with pytest.raises(UsageError, match="line 2"):
        record.read_jsonl(path)


def test_not_a_number_never_reaches_a_row(tmp_path: Path) -> None:
    writer = record.JsonlWriter(tmp_path / "metrics.jsonl")
    with pytest.raises(ValueError, match="JSON"):
        writer.append({"loss": float("nan")})


def test_a_run_belongs_to_one_process(tmp_path: Path) -> None:
    refused = pytest.raises(UsageError, match="another process")
    with record.claimed(tmp_path), refused, record.claimed(tmp_path):
        pass
    with record.claimed(tmp_path):
        pass


def test_provenance_names_what_produced_the_numbers() -> None:
    facts = record.provenance()
    assert facts["versions"]["torch"] and facts["versions"]["python"]
    json.dumps(facts)


def test_a_running_record_that_nobody_holds_is_dead(tmp_path: Path) -> None:
    entry = {"status": "running"}
    assert record.status(tmp_path, entry) == "dead"
    with (tmp_path / record.LOCK).open("w") as lock:
        assert record.status(tmp_path, entry) == "dead"
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert record.status(tmp_path, entry) == "running"
        assert record.status(tmp_path, {"status": "interrupted"}) == "interrupted"
    assert record.status(tmp_path, entry) == "dead"


def test_looking_at_a_run_does_not_keep_anybody_from_it(tmp_path: Path) -> None:
    lock = (tmp_path / record.LOCK).open("w")
    fcntl.flock(lock, fcntl.LOCK_SH)  # as while its status is read
    threading.Timer(0.1, lock.close).start()
    with record.claimed(tmp_path):
        assert record.in_use(tmp_path)
    with (
        record.claimed(tmp_path),
        pytest.raises(UsageError, match="another process"),
        record.claimed(tmp_path),
    ):
        pass
