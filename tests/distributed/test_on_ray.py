"""The command with ``hardware=ray``: it runs, survives the death of an actor, and leaves nobody behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from rlexp.config import paths
from rlexp.config.compose import compose
from rlexp.distributed import guardian, on_ray
from rlexp.errors import UsageError
from rlexp.runs import folder as run_folder
from tests.conftest import environment, only_run

pytestmark = pytest.mark.slow

GYM = ("env=gym", "env.id=CartPole-v1", "tuned=none", "logger=none", "evaluation.episodes=2")
TINY = ("algo.batch_size=8", "algo.sequence_length=10", "algo.learning_starts=100", "algo.lstm_hidden_size=8")


def _processes(session: int) -> dict[int, str]:
    """Names of the living processes of a session; Ray's call themselves by what they do."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
            name = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if int(words[3]) == session and words[0] != "Z":
            found[int(folder.name)] = name
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_run_survives_the_death_of_an_actor_and_leaves_nobody_behind(tmp_path: Path) -> None:
    overrides = ["algo=r2d2", *GYM, *TINY, "hardware=ray", "total_timesteps=1000"]
    for name in ("omegaconf", "gymnasium", "torch", "numpy"):  # none of its processes imports them
        (tmp_path / f"{name}.py").write_text(
            "from pathlib import Path\nPath(__file__).with_name('executed').touch()\n"
        )
    with (tmp_path / "log").open("w") as log:
        run = subprocess.Popen(
            [sys.executable, "-m", "rlexp", *overrides],
            cwd=tmp_path,
            env=environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        killed = 0
        until = time.monotonic() + 400
        while run.poll() is None and time.monotonic() < until:
            rows = [path for path in tmp_path.glob("**/metrics.jsonl") if path.stat().st_size]
            actors = [pid for pid, name in _processes(run.pid).items() if name.startswith("ray::EnvWorker")]
            if rows and actors and not killed:
                os.kill(actors[0], signal.SIGKILL)
                killed = actors[0]
            time.sleep(0.05)
        said = (tmp_path / "log").read_text()
        assert run.poll() == 0, said
        until = time.monotonic() + 10
        while _processes(run.pid) and time.monotonic() < until:
            time.sleep(0.1)
        assert not _processes(run.pid)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    assert not (tmp_path / "executed").exists()
    folder = only_run(tmp_path)
    entry = json.loads((folder / "record.json").read_text())
    assert killed and "died with its unfinished episodes and was replaced" in said
    assert entry["status"] == "finished" and entry["ray"]["actor_deaths"] == 1
    assert entry["timesteps"] >= 1000 and entry["ray"]["updates_per_s"] > 0
    last = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["train/n_updates"] == pytest.approx((last["timesteps"] - 100) / 8, abs=10)
    assert (folder / "model.zip").exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("victim", ["driver", "gcs_server", "raylet"])
def test_whatever_is_killed_is_reported_and_nothing_is_left(tmp_path: Path, victim: str) -> None:
    overrides = ["algo=r2d2", *GYM, *TINY, "hardware=ray", "total_timesteps=1000000"]
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as top, (tmp_path / "log").open("w") as log:
        run = subprocess.Popen(
            [sys.executable, "-m", "rlexp", *overrides],
            cwd=tmp_path,
            env={**environment(), "TMPDIR": top},
            stdout=log,
            stderr=subprocess.STDOUT,
        )

        def within(seconds: float, condition: Callable[[], object]) -> bool:
            until = time.monotonic() + seconds
            while not condition() and time.monotonic() < until:
                time.sleep(0.05)
            return bool(condition())

        try:
            trains = within(
                200,
                lambda: any(
                    one.stat().st_size for one in tmp_path.glob("outputs/runs/*/*/*/*/metrics.jsonl")
                ),
            )
            assert trains, (tmp_path / "log").read_text()
            (folder,) = Path(top).glob("rlexp-ray-*")
            assert folder.stat().st_mode & 0o777 == 0o700
            names = {
                one: Path(guardian.command_line(Path(f"/proc/{one}"))[0]).name
                for one in guardian.users(folder)
            }
            found = [process for process, name in names.items() if name == victim]
            os.kill(run.pid if victim == "driver" else found[0], signal.SIGKILL)
            assert within(30, lambda: run.poll() is not None)
            assert within(10, lambda: not guardian.users(folder)), "nobody lives on"
            assert within(5, lambda: not folder.exists())
        finally:
            run.kill()
            run.wait()
    said = (tmp_path / "log").read_text()
    path = only_run(tmp_path)
    entry = run_folder.read_record(path)
    assert "Traceback" not in said
    if victim == "driver":
        assert run_folder.status(path, entry) == "dead"
    else:
        assert run.returncode == 1 and f"Ray has ended during the run ({victim} is gone)" in said
        assert entry["status"] == "failed" and f"{victim} is gone" in entry["error"]


def test_serial_training_knows_nothing_of_ray(tmp_path: Path) -> None:
    overrides = ["algo=r2d2", *GYM, *TINY, "total_timesteps=200"]
    code = (
        f"import sys; from rlexp.cli import main; main({overrides!r})\n"
        "print('loaded:', [name for name in sys.modules if name.split('.')[0] == 'ray'"
        " or name.startswith('rlexp.distributed')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "loaded: []" in done.stdout


@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        (["algo=ppo"], ["hardware: ray given", "r2d2, r2d3", "algo=ppo"]),
        (["algo=r2d2", "hardware.ray.actors=0"], ["hardware.ray.actors", "at least 1"]),
        (
            ["algo=r2d2", "hardware.ray.update_ratio=fre"],
            ["hardware.ray.update_ratio", "did you mean 'free'?"],
        ),
        (["algo=r2d2", "hardware.ray.actrs=2"], ["did you mean 'hardware.ray.actors'?"]),
        (["algo=r2d2", "algo.buffer_size=100", "hardware.ray.replay_shards=9"], ["algo.buffer_size", "9"]),
    ],
)
def test_what_cannot_be_distributed_is_rejected(overrides: list[str], parts: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        compose([*overrides, *GYM, "total_timesteps=100", "hardware=ray"])
    assert "\n" not in str(error.value) and all(part in str(error.value) for part in parts)


def test_without_ray_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"ray is not installed; pip install 'rlexp\[ray\]'"):
        on_ray.require(None)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "somewhere"])
def test_a_cluster_that_is_not_there_is_rejected_at_once(address: str) -> None:
    with pytest.raises(UsageError, match=f"hardware.ray.address: {address} given"):
        on_ray.require(address)


def test_a_start_that_takes_too_long_is_tried_again_and_cleared_away(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    left: list[subprocess.Popen[bytes]] = []
    folders = set()

    def too_long(**kwargs: Any) -> None:
        folders.add(kwargs["_temp_dir"])
        sleep = [sys.executable, "-c", "import time; print(flush=True); time.sleep(300)", kwargs["_temp_dir"]]
        left.append(subprocess.Popen(sleep, stdout=subprocess.PIPE))
        assert left[-1].stdout is not None
        with left[-1].stdout as said:
            said.readline()  # its words stand in /proc only some time after it was started
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "init", too_long)
    with pytest.raises(Exception, match="timed out during startup"):
        on_ray.RayEngine(None, 1)
    assert len(left) == 3 and all(one.wait(10) == -signal.SIGKILL for one in left)
    assert not any(Path(folder).exists() for folder in folders)


def test_only_what_decides_learning_is_part_of_the_variant() -> None:
    def variant(*overrides: str) -> str:
        return paths.variant(compose(["algo=r2d2", *GYM, "total_timesteps=100", *overrides]))

    with_ray = variant("hardware=ray")
    assert with_ray != variant() == variant("hardware=auto")
    for option in ("address=auto", "object_store_mb=300"):
        assert variant("hardware=ray", f"hardware.ray.{option}") == with_ray
    for option in (
        "actors=3",
        "update_ratio=free",
        "per_actor_epsilon=false",
        "weights_every=1",
        "prefetch=3",
        "replay_shards=2",
    ):
        assert variant("hardware=ray", f"hardware.ray.{option}") != with_ray


def test_the_variants_of_other_hardware_are_what_they_were() -> None:
    cfg = compose(["algo=r2d2", *GYM, "total_timesteps=100"])
    assert paths.learning(cfg)["hardware"] == {"n_envs": 1}
    stored = paths.resolved(cfg)
    del stored["hardware"]["ray"]  # as in the config of a run from before there was such a key
    assert paths.learning(OmegaConf.create(stored)) == paths.learning(cfg)
