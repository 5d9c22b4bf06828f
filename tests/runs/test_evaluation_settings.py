"""How a policy is measured does not decide what is learned: other settings lead to the same run folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlexp import cli
from rlexp.config import paths
from rlexp.config.compose import compose
from rlexp.runs import folder as run_folder
from tests.conftest import CARTPOLE, only_run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_run_ends_with_a_curve_unless_it_is_switched_off(here: Path) -> None:
    budget = ("total_timesteps=3072", "algo.n_steps=512")
    assert cli.main([*CARTPOLE, *budget]) == 0
    rows = run_folder.read_evaluations(only_run(here))
    assert [row["timesteps"] for row in rows] == [1000, 2000, 3000, 3072]
    assert cli.main([*CARTPOLE, *budget, "evaluation.every_timesteps=null", "force=true"]) == 0
    assert [row["timesteps"] for row in run_folder.read_evaluations(only_run(here))] == [3072]


def test_a_finished_run_says_how_it_was_evaluated(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*CARTPOLE]) == 0
    capsys.readouterr()
    assert cli.main([*CARTPOLE]) == 0
    assert "evaluated with" not in capsys.readouterr().out
    assert cli.main([*CARTPOLE, "evaluation.episodes=3", "evaluation.every_timesteps=100"]) == 0
    shown = capsys.readouterr().out
    assert "evaluated with evaluation.every_timesteps=1000, not 100; evaluation.episodes=2, not 3" in shown
    assert f"rlexp evaluate {only_run(here)} evaluation.episodes=3 evaluates it again" in shown
    assert run_folder.read_record(only_run(here))["attempts"] == 1


def test_an_unfinished_run_goes_on_with_the_new_settings(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        *("algo=ppo", "algo.n_steps=64", "env=gym", "env.id=tests.faulty:Faulty-v0", "total_timesteps=512"),
        *("logger=none", "checkpoint.every_timesteps=64", "evaluation.episodes=2"),
        *("+env.kwargs.fault=raise", "+env.kwargs.at=300", "+env.kwargs.mended=mended"),
    ]
    assert cli.main([*arguments, "evaluation.every_timesteps=100"]) == 1
    (here / "mended").touch()
    capsys.readouterr()
    assert cli.main([*arguments, "evaluation.every_timesteps=150"]) == 0
    assert (
        "resuming at step 256; evaluated so far with evaluation.every_timesteps=100, not 150"
        in capsys.readouterr().out
    )
    timesteps = [row["timesteps"] for row in run_folder.read_evaluations(only_run(here))]
    assert timesteps == [100, 200, 300, 450, 512]


@pytest.mark.slow
def test_a_run_of_an_earlier_version_is_found_where_it_lies(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*CARTPOLE, "evaluation.deterministic=false"]
    cfg = compose(arguments)
    folder = paths.run_dir(cfg)
    assert cli.main(arguments) == 0
    earlier = folder.parent.parent / paths.earlier_variant(cfg)
    assert earlier != folder.parent
    folder.parent.rename(earlier)
    capsys.readouterr()
    assert cli.main(arguments) == 0
    assert "already finished" in capsys.readouterr().out
    assert only_run(here) == earlier / folder.name
    assert cli.main([*arguments, "force=true"]) == 0
    assert only_run(here) == earlier / folder.name
    assert run_folder.read_record(only_run(here))["variant"] == earlier.name
