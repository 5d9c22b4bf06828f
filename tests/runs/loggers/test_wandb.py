"""W&B's own client, offline: what was logged is in its file."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rlexp.cli import main
from rlexp.runs import folder as run_folder
from rlexp.runs.loggers import wandb_file
from tests.conftest import CARTPOLE, only_run


def _records(path: Path) -> Iterator[Any]:
    from wandb.proto import wandb_internal_pb2

    with path.open("rb") as file:
        for content in wandb_file.messages(file, wandb_file.OfflineRun()):
            message = wandb_internal_pb2.Record()
            message.ParseFromString(content)
            yield message


def _items(items: Any) -> dict[str, Any]:
    items = getattr(items, "item", items)
    return {
        item.key or "/".join(getattr(item, "nested_key", ())): json.loads(item.value_json) for item in items
    }


@pytest.mark.slow
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
    evaluated = run_folder.read_jsonl(folder / run_folder.EVALUATIONS)
    evaluations = [row for row in rows if "eval/return_mean" in row]
    for axis, section in (
        ("timesteps", "eval"),
        ("episodes", "eval_by_episode"),
        ("updates", "eval_by_update"),
    ):
        drawn = [(row[axis], row[f"{section}/return_mean"]) for row in evaluations]
        assert drawn == [(row[axis], row["return_mean"]) for row in evaluated] and len(drawn) > 1
        assert wandb_file.read(path, folder).axis(f"{section}/return_mean") == axis
    assert [row["updates"] for row in evaluated] == [
        30,
        80,
    ]  # 10 epochs after every 64 steps; the first one is within a rollout
    assert any(m.WhichOneof("record_type") == "exit" for m in messages)
    found = wandb_file.read(path, folder)
    best = max(row["return_mean"] for row in evaluated)
    assert found.summary["eval/return_mean"] == {"max": best, "last": evaluated[-1]["return_mean"]}
    assert found.summary["final/return_mean"] == evaluated[-1]["return_mean"]
    (table,) = folder.glob("wandb/offline-run-*/files/media/table/final/*.table.json")
    final = evaluated[-1]
    assert json.loads(table.read_text())["data"] == [
        ["return", final["return_mean"], final["return_std"], 2],
        ["length", final["length_mean"], final["length_std"], 2],
    ]


def test_every_run_of_a_multirun_has_a_file_of_its_own(rlexp, tmp_path: Path) -> None:
    arguments = [argument for argument in CARTPOLE if argument != "logger=none"]
    result = rlexp("-m", *arguments, "seed=0,1")
    assert result.returncode == 0, result.stderr
    seeds = []
    for path in sorted(tmp_path.glob("outputs/runs/*/*/*/seed=*/wandb/offline-run-*/run-*.wandb")):
        runs = [m.run for m in _records(path) if m.WhichOneof("record_type") == "run"]
        seeds += [_items(run.config.update)["seed"] for run in runs]
    assert seeds == [0, 1]


def test_a_run_that_is_resumed_is_one_run_without_duplicates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """TensorBoard's writer is replaced by one that writes JSON; the package is an extra."""
    from stable_baselines3 import PPO

    class Writer:
        def __init__(self, folder: str) -> None:
            Path(folder).mkdir()
            self._path = Path(folder) / f"events.{len(written)}"
            written.append(self._path)

        def add_scalar(self, *row: Any) -> None:
            with self._path.open("a") as file:
                file.write(json.dumps(row) + "\n")

        def add_text(self, *_: str) -> None:
            pass

        def close(self) -> None:
            pass

    written: list[Path] = []
    package = ModuleType("torch.utils.tensorboard")
    package.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", package)
    monkeypatch.setattr("rlexp.runs.preflight.require", lambda *_: None)
    train, updates = PPO.train, [0]

    def fails_once(self: PPO) -> None:
        updates[0] += 1
        if updates[0] == 6:
            raise OSError("no room")
        train(self)

    monkeypatch.setattr(PPO, "train", fails_once)
    monkeypatch.chdir(tmp_path)
    run = [argument for argument in CARTPOLE if argument != "logger=none"]
    run += ["logger.tensorboard=true", "evaluation.every_timesteps=96", "checkpoint.every_timesteps=192"]
    assert main(run) == 1
    folder = only_run(tmp_path)
    (first,) = folder.glob("wandb/offline-run-*")
    assert main(run) == 0
    assert (folder / run_folder.DISCARDED).is_file()  # there was something to be repeated
    (second,) = folder.glob("wandb/offline-run-*")
    assert first.name[-12:] == second.name[-12:] == run_folder.read_record(folder)["wandb_id"]
    kept = {
        name: run_folder.read_jsonl(folder / name) for name in (run_folder.METRICS, run_folder.EVALUATIONS)
    }
    (path,) = second.glob("*.wandb")
    rows = [_items(m.history) for m in _records(path) if m.WhichOneof("record_type") == "history"]
    assert [row["timesteps"] for row in rows if "wall_s" in row] == [
        row["timesteps"] for row in kept[run_folder.METRICS]
    ]
    steps = [row["timesteps"] for row in kept[run_folder.EVALUATIONS]]
    assert [row["timesteps"] for row in rows if "eval/n" in row] == steps and len(set(steps)) == len(steps)
    (events,) = folder.glob("tensorboard/*")
    scalars = [json.loads(line) for line in events.read_text().splitlines()]
    assert len(written) == 2
    assert [step for name, _, step in scalars if name == "eval/return_mean"] == steps
    assert [value for name, value, _ in scalars if name == "train/loss"] == [
        row["train/loss"] for row in kept[run_folder.METRICS] if "train/loss" in row
    ]


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


@pytest.mark.slow
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
    assert [path.name for path in folder.glob("wandb/offline-run-*/files/*")] == ["media"]  # the final table
    assert not any(m.WhichOneof("record_type") == "stats" for m in messages)
    assert not [found for found in folder.rglob("*") if found.is_symlink()]


@pytest.mark.slow
def test_system_metadata_is_stored_when_asked_for(fresh_rlexp, tmp_path: Path) -> None:
    asked = ("logger.metadata=true", "logger.system_metrics=true")
    folder, requests, noted = _offline_run(fresh_rlexp, tmp_path, *asked)
    assert requests == [] and noted == ""
    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    messages = list(_records(path))
    (run,) = [message.run for message in messages if message.WhichOneof("record_type") == "run"]
    assert run.host == socket.gethostname()
    environments = [m.environment for m in messages if m.WhichOneof("record_type") == "environment"]
    assert any("logger.metadata=true" in one.args for one in environments)
    assert list(folder.glob("wandb/offline-run-*/files/requirements.txt"))
    stats = [_items(m.stats) for m in messages if m.WhichOneof("record_type") == "stats"]
    assert any("memory_percent" in row for row in stats)
