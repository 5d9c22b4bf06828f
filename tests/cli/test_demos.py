"""``rlexp demos`` as a person meets it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import minari
import numpy as np
import pytest
from omegaconf import DictConfig

from rlexp.cli import demos as demos_command
from rlexp.cli import main
from rlexp.demonstrations import storage
from tests.conftest import CARTPOLE, only_run

Here = Callable[..., tuple[int, str, str]]

BOT = ("demos", "env=unlock_pickup", "expert=bot")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """The command line in this process, in an empty folder: exit code, output and complaints."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_the_bot_is_recorded_once(here: Here, tmp_path: Path) -> None:
    arguments = (*BOT, "episodes=3", "seed=7")
    code, out, err = here(*arguments)
    assert code == 0, err
    path = tmp_path / "outputs" / "demonstrations" / "unlock_pickup-bot-3.npz"
    assert out.splitlines()[0].startswith("3 episodes, ") and "success 100.0%" in out
    found = storage.read(path)
    assert len(found) == 3 and found.provenance["success_rate"] == 1.0 and found.provenance["seed"] == 7
    assert found.provenance["task"] == "minigrid-MiniGrid-UnlockPickup-v0"
    assert found.provenance["env"]["id"] == "MiniGrid-UnlockPickup-v0"
    assert len(set(found.provenance["episode_seeds"])) == 3
    content = path.read_bytes()

    code, _, err = here(*arguments)
    assert code == 2 and "force=true" in err and len(err.strip().splitlines()) == 1
    path.write_bytes(b"")
    assert here(*arguments, "force=true")[0] == 0
    assert path.read_bytes() == content, "recorded again, the same bytes"

    path.with_name("broken.npz").write_bytes(content[:-9])
    _, listed, _ = here("list", "demos")
    assert "unlock_pickup-bot-3.npz" in listed and "100.0%" in listed
    assert "damaged" in next(line for line in listed.splitlines() if "broken" in line)


def test_the_file_is_named_after_an_id_with_a_slash(tmp_path: Path) -> None:
    args = SimpleNamespace(
        output=None, overrides=["env=ALE/Pong-v5"], expert="bot", output_dir="o", episodes=3
    )
    assert demos_command._path(args, DictConfig({})) == Path("o/demonstrations/ALE_Pong-v5-bot-3.npz")


def test_a_trained_run_is_recorded(rlexp, here: Here, tmp_path: Path) -> None:
    assert rlexp(*CARTPOLE).returncode == 0
    run = only_run(tmp_path)
    code, _, err = here(
        "demos", f"expert={run}", "episodes=2", "output=some/where.npz", "deterministic=false"
    )
    assert code == 0, err
    found = storage.read(tmp_path / "some" / "where.npz")
    assert (
        found.provenance["expert"]["algo"] == "ppo" and found.provenance["expert"]["deterministic"] is False
    )
    assert "success_rate" not in found.provenance
    assert [float(len(episode)) for episode in found.episodes] == [e.rewards.sum() for e in found.episodes]

    code, _, err = here("demos", f"expert={run}", "env=gym", "env.id=Acrobot-v1", "episodes=2")
    assert code == 2 and "trained on gym-CartPole-v1" in err
    (run / "model.zip").unlink()
    code, _, err = here("demos", f"expert={run}", "episodes=2")
    assert code == 2 and "no trained policy yet" in err


CASES = {
    "no expert": (("demos", "env=unlock_pickup"), "expert: not given"),
    "no task": (("demos", "expert=bot"), "env: not given"),
    "no such task": (("demos", "env=unlok_pickup", "expert=bot"), "did you mean 'unlock_pickup'"),
    "no such run": (
        ("demos", "env=unlock_pickup", "expert=somebody"),
        "'somebody' given, must be bot or the folder",
    ),
    "task without a bot": (("demos", "env=memory", "expert=bot"), "MemoryS7-v0 provides none"),
    "bot that does not act by numbers": (("demos", "env=restaurant", "expert=bot"), "action space"),
    "misspelt option": ((*BOT, "episode=5"), "did you mean 'episodes'"),
    "no value at all": (
        (*BOT, "episodes"),
        "'episodes' is one argument too many; settings are written key=value",
    ),
    "text for a number": ((*BOT, "episodes=many"), "episodes: 'many' given, must be a whole number"),
    "no episodes": ((*BOT, "episodes=0"), "episodes: 0 given, must be at least 1"),
    "negative seed": ((*BOT, "seed=-1"), "seed: -1 given, must be at least 0"),
    "neither yes nor no": ((*BOT, "force=maybe"), "allowed are true, false"),
    "other kind of file": ((*BOT, "output=some.json"), "must end in .npz, or in nothing"),
    "folder with something else": ((*BOT, "output=.", "force=true"), "not a Minari dataset and nothing else"),
    "folder that is a file": ((*BOT, "output=/dev/null/some.npz"), "/dev/null: is not a folder"),
    "wrong key of the task": ((*BOT, "env.ids=3"), "env.id"),
    "list misspelt": (("list", "demo"), "did you mean 'demos'"),
}


@pytest.mark.parametrize("name", CASES)
def test_rejected_in_one_line(here: Here, tmp_path: Path, name: str) -> None:
    arguments, expected = CASES[name]
    code, _, err = here(*arguments)
    assert code == 2
    assert len(err.strip().splitlines()) == 1 and expected in err, err
    assert list(tmp_path.iterdir()) == [], "something was left on disk"


@pytest.fixture
def recorded(here: Here, tmp_path: Path) -> Path:
    assert here(*BOT, "episodes=2", "output=some.npz")[0] == 0
    return tmp_path / "some.npz"


@pytest.mark.parametrize("algo", ["bc", "dqfd", "r2d3"])
@pytest.mark.parametrize(
    ("damage", "arguments", "expected"),
    [
        ("none", ("env=key_corridor",), "recorded on minigrid-MiniGrid-UnlockPickup-v0, the run is on"),
        ("none", ("env=unlock_pickup", "env.mission_length=6"), "its observations are"),
        ("cut off", ("env=unlock_pickup",), "cut off or damaged"),
        ("changed", ("env=unlock_pickup",), "checksum does not fit"),
        ("missing", ("env=unlock_pickup",), "no such file"),
        ("foreign", ("env=unlock_pickup",), "not a file of demonstrations"),
    ],
)
def test_bad_demonstrations_are_rejected_in_one_line(
    here: Here, recorded: Path, algo: str, damage: str, arguments: tuple[str, ...], expected: str
) -> None:
    if damage == "cut off":
        recorded.write_bytes(recorded.read_bytes()[:-50])
    elif damage == "changed":
        with np.load(recorded) as archive:
            arrays = {name: archive[name] for name in archive.files}
        np.savez_compressed(recorded, **{**arrays, "rewards": arrays["rewards"] * 2})
    elif damage == "missing":
        recorded.unlink()
    elif damage == "foreign":
        recorded.write_text("return,episode\n")
    code, _, err = here(
        f"algo={algo}",
        *arguments,
        f"algo.demonstrations={recorded}",
        "total_timesteps=10",
        "output_dir=elsewhere",
    )
    assert code == 2 and len(err.strip().splitlines()) == 1, err
    assert expected in err and str(recorded) in err
    assert not Path("elsewhere").exists(), "something was left on disk"


def test_a_minari_dataset_is_recorded_and_learned_from(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here(*CARTPOLE)[0] == 0
    path = tmp_path / "outputs" / "demonstrations" / "mine-v1"
    record = ("demos", f"expert={only_run(tmp_path)}", "episodes=2", f"output={path}")
    code, out, err = here(*record)
    assert code == 0 and out.splitlines()[-1] == str(path), err
    assert here(*record[:-1], "output=same.npz")[0] == 0
    one, other = storage.read(path), storage.read("same.npz")
    assert [episode.actions.tolist() for episode in one.episodes] == [
        episode.actions.tolist() for episode in other.episodes
    ]
    recovered = minari.MinariDataset(path / "data").recover_environment()
    assert recovered.spec is not None and recovered.spec.max_episode_steps == 500

    code, _, err = here(*record)
    assert code == 2 and "exists; force=true replaces it" in err
    (path / "notes.txt").touch()
    code, _, err = here(*record, "force=true")
    assert code == 2 and "it is not replaced" in err
    (path / "notes.txt").unlink()
    assert here(*record, "force=true", "seed=1")[0] == 0
    assert storage.read(path).provenance["seed"] == 1

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(path.parent))
    cartpole = (
        "env=gym",
        "env.id=CartPole-v1",
        "tuned=none",
        "total_timesteps=64",
        "logger=none",
        "evaluation.episodes=1",
    )
    for given in (path, "mine-v1"):
        code, _, err = here("algo=bc", *cartpole, f"algo.demonstrations={given}")
        assert code == 0, err

    metadata = path / "data" / "metadata.json"
    foreign = json.loads(metadata.read_text())
    del foreign["rlexp"]
    metadata.write_text(json.dumps(foreign))
    _, out, err = here("list", "demos")
    row = next(line for line in out.splitlines() if "mine-v1" in line)
    assert "CartPole-v1" in row and "ppo" in row and "damaged" not in row
    code, _, err = here("algo=bc", *cartpole, "env.id=Acrobot-v1", f"algo.demonstrations={path}")
    assert code == 2 and "was recorded on CartPole-v1, the run is on Acrobot-v1" in err
    code, _, err = here("algo=bc", *cartpole, "algo.demonstrations=D4RL/door/human-v2")
    assert code == 2 and "no Minari dataset of that id in" in err


@pytest.mark.parametrize("package", ["h5py", "minari"])
def test_a_missing_package_is_answered_before_anything_is_recorded(
    package: str, here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # importing it fails, and it counts as not installed
    code, _, err = here(*BOT, "episodes=1", "output=some")
    assert code == 2 and f"{package} is not installed; pip install 'rlexp[demos]'" in err
    assert not any(tmp_path.iterdir())


def test_a_missing_package_is_answered_before_a_dataset_is_read(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here(*BOT, "episodes=1", "output=some")[0] == 0
    monkeypatch.setitem(sys.modules, "h5py", None)
    code, _, err = here("algo=bc", "env=unlock_pickup", "total_timesteps=9", "algo.demonstrations=some")
    assert code == 2 and "h5py is not installed; pip install 'rlexp[demos]'" in err
    assert [path.name for path in tmp_path.iterdir()] == ["some"]


def test_a_forgotten_file(here: Here) -> None:
    code, _, err = here("algo=r2d3", "env=unlock_pickup", "total_timesteps=10")
    assert code == 2 and err.startswith("rlexp: algo.demonstrations: no value given")
