"""W&B's own client, offline: what was logged is in its file."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlexp.runs import folder as run_folder
from tests.conftest import CARTPOLE, only_run

_BLOCK = 32 * 1024
_HEADER = 7


def _records(path: Path) -> Iterator[Any]:
    """Read W&B's transaction log: LevelDB's framing around protobuf messages."""
    from wandb.proto import wandb_internal_pb2

    content = path.read_bytes()
    assert content[:4] == b":W&B"
    position, parts = _HEADER, b""
    while position + _HEADER <= len(content):
        left = _BLOCK - position % _BLOCK
        if left < _HEADER:
            position += left
            continue
        _, length, kind = struct.unpack("<IHB", content[position : position + _HEADER])
        if kind == 0:
            break
        parts += content[position + _HEADER : position + _HEADER + length]
        position += _HEADER + length
        if kind in (1, 4):  # a whole message, or the last part of one
            message = wandb_internal_pb2.Record()
            message.ParseFromString(parts)
            parts = b""
            yield message


def _items(items: Any) -> dict[str, Any]:
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


def test_the_offline_file_holds_what_was_logged(rlexp, tmp_path: Path) -> None:
    arguments = [argument for argument in CARTPOLE if argument != "logger=none"]
    result = rlexp(
        *arguments, "evaluation.every_timesteps=256", "tags=[a,b]", "seed=5", env={"WANDB_API_KEY": ""}
    )
    assert result.returncode == 0, result.stderr
    folder = only_run(tmp_path)
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    messages = list(_records(path))
    (run,) = [message.run for message in messages if message.WhichOneof("record_type") == "run"]
    entry = run_folder.read_record(folder)
    assert run.run_id == entry["wandb_id"] and run.project == "rlexp"
    assert run.run_group.endswith(entry["variant"]) and "s5" not in run.run_group
    assert set(run.tags) == {"a", "b"}
    config = _items(run.config.update)
    assert config["seed"] == 5 and config["algo"]["n_steps"] == 64 and config["env"]["id"] == "CartPole-v1"
    rows = [_items(m.history.item) for m in messages if m.WhichOneof("record_type") == "history"]
    logged = run_folder.read_jsonl(folder / run_folder.METRICS)
    training = [row for row in rows if "train/loss" in row]
    expected = [row for row in logged if "train/loss" in row]
    assert [row["train/loss"] for row in training] == [row["train/loss"] for row in expected]
    assert [row["timesteps"] for row in training] == [row["timesteps"] for row in expected]
    evaluations = [row["eval/return_mean"] for row in rows if "eval/return_mean" in row]
    assert evaluations == [
        row["return_mean"] for row in run_folder.read_jsonl(folder / run_folder.EVALUATIONS)
    ]
    metrics = {
        m.metric.name or m.metric.glob_name: m.metric
        for m in messages
        if m.WhichOneof("record_type") == "metric"
    }
    assert {"timesteps", "episodes"} <= set(metrics)
    assert any(m.WhichOneof("record_type") == "exit" for m in messages)


def test_every_run_of_a_multirun_has_a_file_of_its_own(rlexp, tmp_path: Path) -> None:
    arguments = [argument for argument in CARTPOLE if argument != "logger=none"]
    assert rlexp("-m", *arguments, "seed=0,1").returncode == 0
    seeds = []
    for path in sorted(tmp_path.glob("outputs/runs/*/*/*/seed=*/wandb/offline-run-*/run-*.wandb")):
        runs = [m.run for m in _records(path) if m.WhichOneof("record_type") == "run"]
        seeds += [_items(run.config.update)["seed"] for run in runs]
    assert seeds == [0, 1]


def test_no_logger_no_folder(rlexp, tmp_path: Path) -> None:
    assert rlexp(*CARTPOLE).returncode == 0
    assert not (only_run(tmp_path) / "wandb").exists()


_HOOK = """
import os, sys

def _note(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        address = arguments[1] if event == "socket.connect" else arguments[0]
        if event != "socket.connect" or isinstance(address, tuple):  # a path is not a network
            with open(os.environ["NOTED"], "a") as file:
                file.write(f"{event} {address!r}\\n")

sys.addaudithook(_note)
"""


class _Trap:
    """Listens on this machine and counts who comes."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(2)
                try:
                    self.requests.append(connection.recv(200))
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                except OSError:
                    self.requests.append(b"?")

    def close(self) -> None:
        self._socket.close()


def _offline_run(rlexp: Any, tmp_path: Path, *more: str) -> tuple[Path, list[bytes], str]:
    """Train with the default logger, every way out of the machine ending in a trap."""
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(_HOOK)
    noted = tmp_path / "noted.txt"
    noted.write_text("")
    traps = [_Trap(), _Trap()]
    base, proxy = (f"http://127.0.0.1:{trap.port}" for trap in traps)
    root = Path(run_folder.__file__).parents[2]
    environment = {
        "WANDB_BASE_URL": base,
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
        "ALL_PROXY": proxy,
        "WANDB_ERROR_REPORTING": "true",  # even then
        "PYTHONPATH": f"{tmp_path / 'hook'}:{root}",
        "NOTED": str(noted),
        "HOME": str(tmp_path / "home-of-somebody"),
    }
    arguments = [argument for argument in CARTPOLE if argument != "logger=none"]
    result = rlexp(*arguments, *more, env=environment)
    for trap in traps:
        trap.close()
    assert result.returncode == 0, result.stderr
    return only_run(tmp_path), [one for trap in traps for one in trap.requests], noted.read_text()


def test_the_offline_default_opens_no_connection_and_stores_nothing_of_the_machine(
    fresh_rlexp, tmp_path: Path
) -> None:
    output = tmp_path / "a-telling-path"
    folder, requests, noted = _offline_run(fresh_rlexp, tmp_path, f"output_dir={output}")
    assert requests == []
    assert noted == ""
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    messages = list(_records(path))
    stored = path.read_bytes()
    for telling in (str(tmp_path), "a-telling-path", "home-of-somebody", "evaluation.episodes=2"):
        assert telling.encode() not in stored
    (run,) = [message.run for message in messages if message.WhichOneof("record_type") == "run"]
    assert run.host == ""
    environments = [m.environment for m in messages if m.WhichOneof("record_type") == "environment"]
    assert all(not one.host and not one.username and not one.args for one in environments)
    assert not list(folder.glob("wandb/offline-run-*/files/*"))
    assert not [found for found in folder.rglob("*") if found.is_symlink()]


def test_system_metadata_is_stored_when_asked_for(fresh_rlexp, tmp_path: Path) -> None:
    folder, requests, noted = _offline_run(fresh_rlexp, tmp_path, "logger.metadata=true")
    assert requests == [] and noted == ""
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    messages = list(_records(path))
    (run,) = [message.run for message in messages if message.WhichOneof("record_type") == "run"]
    assert run.host == socket.gethostname()
    environments = [m.environment for m in messages if m.WhichOneof("record_type") == "environment"]
    assert any("logger.metadata=true" in one.args for one in environments)
    assert list(folder.glob("wandb/offline-run-*/files/requirements.txt"))
