"""``rlexp info``: what is said of everything that can be chosen."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from rlexp import registry
from rlexp.cli import main
from rlexp.cli.info import names
from rlexp.config.compose import compose
from rlexp.config.docstrings import read
from rlexp.reports import sweep_file

# One of each kind.
NAMES = [
    "ppo",
    "bc",
    "builtin",
    "handcrafted",
    "gym",
    "minigrid",
    "unlock_pickup",
    "datacenter",
    "figure5",
    "acer_reacher",
    "MountainCarContinuous-v0",
]


@pytest.fixture
def info(capfd: pytest.CaptureFixture[str]):
    def ask(*arguments: str) -> str:
        assert main(["info", *arguments]) == 0
        shown = capfd.readouterr()
        assert shown.err == ""
        return shown.out

    return ask


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_can_be_chosen_is_explained_in_80_columns(info, name: str) -> None:
    shown = info(name)
    assert max(map(len, shown.splitlines())) <= 80
    for line in shown.replace("\\\n", "").splitlines():
        if not line.startswith("  rlexp algo=") and not line.startswith(("  rlexp -m", "  rlexp sweep")):
            continue
        command = shlex.split(line)
        if command[1] in ("sweep", "report"):
            sweep_file.load(command[2])
            continue
        overrides = [one.replace(",3e-4", "").replace("0-4", "0") for one in command[1:] if one != "-m"]
        compose(overrides)  # what cannot be run raises


def test_settings_have_default_range_and_meaning(info) -> None:
    shown = info("lcpo")
    assert "algo.gamma=0.99; > 0 and <= 1\n" in shown
    assert "advantages outside loops are at least" in shown  # of a base class
    assert "Number of epoch when optimizing" in shown  # of Stable-Baselines3's
    assert "Wu & Rasmussen 2021" in shown
    assert "datacenter" not in shown and "restaurant" in shown


def test_every_setting_of_ours_has_a_meaning() -> None:
    from rlexp.config import settings
    from rlexp.config.hydra_app import hydra_app

    with hydra_app() as app:
        for spec in registry.envs().values():
            for one in settings.of(app, spec):
                assert one.meaning, one.key


@pytest.mark.parametrize(
    ("typed", "title"), [("LCPO", "lcpo (algorithm)"), ("rlexp/Restaurant-v0", "restaurant (environment)")]
)
def test_a_class_or_an_id_is_as_good_as_a_name(info, typed: str, title: str) -> None:
    assert info(typed).startswith(title)


def test_one_name_for_two_things_explains_both(info) -> None:
    shown = info("r2d3")
    assert "r2d3 (algorithm)" in shown and "r2d3 (sweep)" in shown


def test_without_a_name_it_lists_the_names(info) -> None:
    assert set(info().split()) >= set(names())


@pytest.mark.parametrize(("typed", "said"), [("lcppo", "did you mean 'lcpo'?"), ("zzqq", "rlexp info lists")])
def test_an_unknown_name(capfd: pytest.CaptureFixture[str], typed: str, said: str) -> None:
    assert main(["info", typed]) == 2
    assert said in capfd.readouterr().err


def test_needs_neither_torch_nor_gymnasium() -> None:
    probe = "import sys; from rlexp.cli import main; main(['info', 'ppo', 'restaurant']); "
    probe += "sys.exit(any(name in sys.modules for name in ('torch', 'gymnasium', 'pandas')))"
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True).returncode == 0


def test_a_class_is_found_where_it_is_defined() -> None:
    found = read("stable_baselines3:PPO")
    assert "1707.06347" in found.text and "rollout" in found.parameters["n_steps"]
    assert read("no_such_package:Nothing").parameters == {}
