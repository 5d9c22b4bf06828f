"""``rlexp resume``, larger budgets and warm starts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch as th

from rlexp.cli import main
from rlexp.runs.folder import read_jsonl

_PPO = (
    "algo=ppo",
    "env=CartPole-v1",
    "tuned=none",
    "algo.n_steps=32",
    "algo.batch_size=16",
    "logger=none",
    "evaluation.episodes=1",
    "evaluation.every_timesteps=null",
)
_SAC = (
    "algo=sac",
    "env=Pendulum-v1",
    "tuned=none",
    "algo.learning_starts=20",
    "algo.batch_size=8",
    "algo.net_arch=[8]",
    *_PPO[5:],
)


_MEMORY = (
    "env=pendulum_p",
    "env.max_steps=24",  # episodes end before, at and after the smaller budget
    "algo.learning_starts=20",
    "algo.batch_size=4",
    "algo.sequence_length=4",
    *_PPO[4:],
)
_SAC_LSTM = (
    "algo=sac_lstm",
    "algo.actor_units=8",
    "algo.critic_units=8",
    "algo.lstm_hidden_size=8",
    *_MEMORY,
)
_SLAC = (
    "algo=slac",
    "algo.z1_dim=4",
    "algo.z2_dim=4",
    "algo.model_arch=[8]",
    "algo.net_arch=[8]",
    "algo.pretrain_updates=3",
    "algo.divergence_warmup=50",  # not over at the smaller budget
    *_MEMORY,
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trained(*overrides: str) -> None:
    assert main(list(overrides)) == 0


def folder_of(top: str | Path, steps: int) -> Path:
    """The run folder with that budget."""
    (found,) = (
        path.parent
        for path in Path(top).glob("runs/*/*/*/seed=0/config.yaml")
        if f"total_timesteps: {steps}\n" in path.read_text()
    )
    return found


def record(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "record.json").read_text())
    return content


def weights(folder: Path) -> dict[str, th.Tensor]:
    import io
    import zipfile

    with zipfile.ZipFile(folder / "model.zip") as archive:
        states = {name: archive.read(name) for name in archive.namelist() if name.endswith(".pth")}
    found: dict[str, th.Tensor] = th.load(io.BytesIO(states["policy.pth"]), weights_only=True)
    return found


def assert_same(one: Path, other: Path) -> None:
    mine, theirs = weights(one), weights(other)
    assert mine.keys() == theirs.keys() and all(th.equal(mine[key], theirs[key]) for key in mine)
    measured = [{**record(folder)["evaluation"], "wall_s": 0} for folder in (one, other)]
    assert measured[0] == measured[1]
    rows = [[{**row, "wall_s": 0} for row in read_jsonl(folder / "metrics.jsonl")] for folder in (one, other)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("run", [_PPO, _SAC, _SAC_LSTM, _SLAC], ids=["ppo", "sac", "sac_lstm", "slac"])
def test_a_larger_budget_goes_on_as_if_it_had_been_there_at_once(
    here: Path, capfd: pytest.CaptureFixture[str], run: tuple[str, ...]
) -> None:
    trained(*run, "total_timesteps=64")
    capfd.readouterr()
    trained(*run, "total_timesteps=128")
    assert "continuing the finished run of 64 steps" in capfd.readouterr().out
    trained(*run, "total_timesteps=128", "output_dir=once")
    short, long, once = folder_of("outputs", 64), folder_of("outputs", 128), folder_of("once", 128)
    assert_same(long, once)
    source = record(long)["extended_from"]
    assert source["timesteps"] == 64 and source["run"] == str(short.absolute())
    assert source["model_sha256"] == hashlib.sha256((short / "model.zip").read_bytes()).hexdigest()
    assert "extended_from" not in record(once) and record(short)["timesteps"] == 64


def test_resume_extends_from_any_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    trained(*_PPO, "total_timesteps=64")
    short = folder_of("outputs", 64).absolute()
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    trained("resume", str(short), "total_timesteps=0.096k")
    assert record(folder_of(here / "outputs", 96))["extended_from"]["timesteps"] == 64
    capfd.readouterr()
    trained("resume", str(short))
    assert "already finished" in capfd.readouterr().out
    assert not list((here / "elsewhere").iterdir())


def test_an_interrupted_run_resumes_from_any_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stable_baselines3 import PPO

    train, updates = PPO.train, [0]

    def fails_once(self: PPO) -> None:
        updates[0] += 1
        if updates[0] == 3:
            raise OSError("no room")
        train(self)

    monkeypatch.setattr(PPO, "train", fails_once)
    run = (*_PPO, "total_timesteps=128", "checkpoint.every_timesteps=32")
    assert main([*run]) == 1
    folder = folder_of("outputs", 128).absolute()
    before = (folder / "config.yaml").read_text()
    monkeypatch.chdir("/")
    trained("resume", str(folder))
    assert record(folder)["attempts"] == 2 and (folder / "config.yaml").read_text() == before
    assert record(folder)["variant"] == folder.parent.name
    trained(*run, f"output_dir={here}/once")
    assert_same(folder, folder_of(here / "once", 128))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["total_timesteps=96"], "exploration rate falls over a fraction of the budget"),
        (["algo.gamma=0.9"], "not a setting of rlexp resume"),
        (["env.id=Acrobot-v1"], "changes what is learned"),
        (["total_timesteps=many"], "whole number"),
    ],
)
def test_what_cannot_be_continued(
    here: Path, capfd: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    trained("algo=dqn", *_PPO[1:3], *_PPO[5:], "total_timesteps=64")
    folder = folder_of("outputs", 64)
    files = sorted(here.rglob("*"))
    capfd.readouterr()
    assert main(["resume", str(folder), *more]) == 2
    assert said in capfd.readouterr().err
    assert sorted(here.rglob("*")) == files


def test_a_schedule_over_the_budget_starts_over_and_says_so(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = ("algo=dqn", *_PPO[1:3], *_PPO[5:])
    trained(*run, "total_timesteps=64")
    capfd.readouterr()
    trained(*run, "total_timesteps=96")
    assert "not continued: algo=dqn: its exploration rate" in capfd.readouterr().out
    assert "extended_from" not in record(folder_of("outputs", 96))


def test_a_damaged_checkpoint_is_not_continued(here: Path) -> None:
    trained(*_PPO, "total_timesteps=64")
    (state,) = folder_of("outputs", 64).glob("checkpoints/*/state.json")
    state.write_text(state.read_text().replace("1", "2", 1))
    trained(*_PPO, "total_timesteps=96")
    assert "extended_from" not in record(folder_of("outputs", 96))


def test_a_warm_start_begins_with_the_weights_of_another_run(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stable_baselines3 import PPO

    trained(*_PPO, "total_timesteps=64")
    source = folder_of("outputs", 64)
    monkeypatch.setattr(PPO, "train", lambda self: None)
    trained(*_PPO, "total_timesteps=32", f"algo.init_from={source}", "output_dir=warm")
    warm = folder_of("warm", 32)
    mine, theirs = weights(warm), weights(source)
    assert all(th.equal(mine[key], theirs[key]) for key in mine)
    entry = record(warm)["init_from"]
    assert entry["model_sha256"] == hashlib.sha256((source / "model.zip").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["algo=ppo", "env=Acrobot-v1"], "another observation space"),
        (["algo=ppo", "env=CartPole-v1", "algo.net_arch=[8]"], "of another model"),
        (["algo=a2c", "env=CartPole-v1"], "is of ppo, the run is of a2c"),
        (["algo=ppo", "env=CartPole-v1", "init_from=nowhere"], "no run here"),
    ],
)
def test_a_warm_start_from_what_does_not_fit(
    here: Path, capfd: pytest.CaptureFixture[str], overrides: list[str], said: str
) -> None:
    trained(*_PPO, "total_timesteps=64")
    source = folder_of("outputs", 64)
    capfd.readouterr()
    more = ["total_timesteps=64", "logger=none", "output_dir=warm", f"init_from={source}"]
    assert main([*more, *overrides]) == 2
    line = capfd.readouterr().err
    assert said in line and line.count("\n") == 1
    assert not (here / "warm").exists()
