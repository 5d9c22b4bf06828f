"""Any group is swept together with any other, with every launcher."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest
from omegaconf import DictConfig

from rlexp.cli import main
from rlexp.config import paths
from rlexp.config.hydra_app import hydra_app
from rlexp.errors import UsageError
from rlexp.runs import folder as run_folder
from rlexp.sweep import multirun

# Two options of every group; the tuned settings follow algorithm and environment, the protocol follows the task.
GROUPS = {
    "algo": ("ppo", "lcpo"),
    "env": ("restaurant", "blind_cliffwalk"),
    "experiment": ("lcpo_decay", "ppo_tuned"),
    "env/benchmark": ("env2", "env4"),
    "hardware": ("cpu", "auto"),
    "logger": ("none", "wandb_online"),
}
PAIRS = [("algo", "env"), ("env", "algo"), ("algo", "env/benchmark"), ("experiment", "env/benchmark")]
PAIRS += [("hardware", "algo"), ("env", "logger")]


def launched(overrides: list[str], folder: Path) -> list[DictConfig]:
    """The configs that the launcher hands to the runs."""
    found: list[DictConfig] = []
    with hydra_app() as app:
        runs = multirun.expand(app, [*overrides, f"output_dir={folder}"])
        multirun.launch(app, runs, lambda cfg: found.append(cfg))
    return found


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=["+".join(pair) for pair in PAIRS])
def test_a_swept_group_composes_as_when_given_alone(tmp_path: Path, first: str, second: str) -> None:
    rest = ["total_timesteps=5", *([] if {"algo", "experiment"} & {first, second} else ["algo=ppo"])]
    found = launched([*rest, *(f"{key}={','.join(GROUPS[key])}" for key in (first, second))], tmp_path)
    with hydra_app() as app:
        alone = [
            app.compose([*rest, f"{first}={a}", f"{second}={b}", f"output_dir={tmp_path}"])
            for a, b in itertools.product(GROUPS[first], GROUPS[second])
        ]
    assert [paths.resolved(cfg) for cfg in found] == [paths.resolved(cfg) for cfg in alone]
    assert len({str(paths.resolved(cfg)) for cfg in found}) == 4


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_algorithms_and_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], launcher: str
) -> None:
    """The documented line, with a reference policy in place of one that takes its time to learn."""
    monkeypatch.chdir(tmp_path)
    arguments = ["-m", "algo=handcrafted,random", "seed=0-1", f"hydra/launcher={launcher}", "logger=none"]
    assert main([*arguments, "evaluation.episodes=2"]) == 0
    shown = capfd.readouterr()
    assert "4 of 4 runs finished" in shown.out and shown.err == ""
    records = [run_folder.read_record(path) for path in tmp_path.glob("outputs/runs/restaurant/*/*/seed=*")]
    assert sorted((entry["algo"], entry["seed"]) for entry in records) == [
        ("handcrafted", 0),
        ("handcrafted", 1),
        ("random", 0),
        ("random", 1),
    ]


def test_the_folder_of_an_earlier_multirun_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What the earlier one trained, and where that is by now, does not concern the later one."""
    monkeypatch.chdir(tmp_path)
    arguments = ["-m", "algo=random", "seed=0,1", "logger=none", "evaluation.episodes=1"]
    folder = f"hydra.sweep.dir=/{tmp_path}//multi//run/"
    assert main([*arguments, folder, "output_dir=before"]) == 0
    shutil.rmtree("before")
    capfd.readouterr()
    assert main([*arguments, folder, "output_dir=now"]) == 0
    shown = capfd.readouterr()
    assert "2 of 2 runs finished" in shown.out and shown.err == ""


def test_a_group_is_enumerated_by_a_pattern() -> None:
    with hydra_app() as app:
        assert multirun.expand(app, ["algo=glob(r2d*)"]) == [["algo=r2d2"], ["algo=r2d3"]]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("seed=range(0,0)", "no value at all"),
        ("seed=range(0,10000000000)", "more than 10,000 runs"),
        ("seed=shuffle(range(0,10000000000))", "more than 10,000 runs"),
        ("seed=glob(*)", "seed=glob(*)"),
        ("seed=interval(0,1)", "cannot be enumerated"),
        ("hydra/launcher=basic,joblib", "hold for all runs"),
    ],
)
def test_what_cannot_be_enumerated(override: str, expected: str) -> None:
    with hydra_app() as app, pytest.raises(UsageError, match=r".") as raised:
        multirun.expand(app, ["algo=ppo,lcpo", override])
    assert expected in str(raised.value) and override in str(raised.value)
