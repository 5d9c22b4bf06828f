"""Settings for gymnasium's environments: ``conf/tuned/gym/<id>/<algo>.yaml``, chosen by ``env.id``."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlexp.cli import main
from rlexp.config import paths
from rlexp.config.compose import checked, compose, explained
from rlexp.config.hydra_app import HydraApp, hydra_app
from rlexp.config.natural import translate
from rlexp.config.shipped import conf_dir
from rlexp.sweep import multirun

_FILES = sorted((conf_dir() / "tuned" / "gym").glob("*/*.yaml"))


@pytest.fixture(scope="module")
def app():
    with hydra_app() as found:
        yield found


@pytest.mark.parametrize("path", _FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_is_shipped_is_a_run(app: HydraApp, path: Path) -> None:
    overrides = translate(app, [f"algo={path.stem}", f"env={path.parent.name}"])
    assert overrides[-1] == f"tuned=gym/{path.parent.name}/{path.stem}"
    cfg = checked(explained(app, overrides))
    assert cfg.env.id == path.parent.name and cfg.total_timesteps >= 20_000
    plain = checked(explained(app, [*overrides[:-1], "tuned=none", f"total_timesteps={cfg.total_timesteps}"]))
    assert paths.learning(cfg) != paths.learning(plain), "it sets something beside the budget"
    credit = path.read_text().splitlines()[1]
    assert credit.startswith(("# RL-Zoo (Raffin 2020), hyperparams/", "# Ours, measured by sweeps/"))


def test_every_environment_of_the_list_has_settings() -> None:
    assert {path.parent.name for path in _FILES} == {
        "CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "LunarLander-v3",
        "LunarLanderContinuous-v3", "BipedalWalker-v3", "Hopper-v5", "HalfCheetah-v5", "Walker2d-v5", "Ant-v5",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "tuned"),
    [
        (["algo=ppo", "env=gym", "env.id=CartPole-v1"], "gym/CartPole-v1/ppo"),
        (["env=CartPole-v1", "algo=a2c"], "gym/CartPole-v1/a2c"),
        (["algo=sac", "env=HalfCheetah-v4"], "gym/HalfCheetah-v5/sac"),
        (["algo=a2c", "env=LunarLander-v2"], "gym/LunarLander-v3/a2c"),
        (["algo=a2c", "env=gym", "env.id=LunarLander-v2"], "gym/LunarLander-v3/a2c"),
        (["algo=lcpo", "env=CartPole-v1"], None),
        (["algo=ppo", "env=FrozenLake-v1"], None),
        (["algo=ppo", "env=own.module:CartPole-v1"], None),
        (["algo=ppo", "env=../../secret-v1"], None),
        (["algo=ppo", "env=restaurant", "env.id=CartPole-v1"], None),
        (["algo=ppo", "env=CartPole-v1", "tuned=none"], "none"),
        (["algo=ppo", "env=CartPole-v1", "tuned=null"], "none"),
        (["algo=ppo", "env=CartPole-v1", "tuned=gym/Acrobot-v1/ppo"], "gym/Acrobot-v1/ppo"),
    ],
)
def test_selection(app: HydraApp, typed: list[str], tuned: str | None) -> None:
    plain = translate(app, typed)
    assert [text for text in plain if text.startswith("tuned=")] == ([f"tuned={tuned}"] if tuned else [])
    assert translate(app, plain) == plain


def test_an_older_version_that_gymnasium_no_longer_builds_is_todays() -> None:
    assert compose(["algo=a2c", "env=LunarLander-v2"]).env.id == "LunarLander-v3"
    assert compose(["algo=sac", "env=HalfCheetah-v4"]).env.id == "HalfCheetah-v4"


def test_an_override_wins_wherever_it_stands() -> None:
    cfg = compose(["hardware.n_envs=2", "total_timesteps=9k", "algo=ppo", "env=CartPole-v1", "algo.gamma=0.9",
                   "algo.batch_size=16", "normalize.rewards=true"])  # fmt: skip
    assert (cfg.hardware.n_envs, cfg.total_timesteps, cfg.algo.gamma, cfg.algo.n_steps) == (2, 9000, 0.9, 32)
    assert cfg.normalize.rewards and not cfg.normalize.observations


def test_without_settings_a_budget_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algo=ppo", "env=FrozenLake-v1"]) == 2
    assert "no budget given" in capsys.readouterr().err


def test_every_run_of_a_multirun_has_its_own(app: HydraApp) -> None:
    jobs = multirun.expand(app, ["env=gym", "env.id=CartPole-v1,Pendulum-v1", "algo=ppo,a2c", "seed=0"])
    chosen = [checked(explained(app, translate(app, job))) for job in jobs]
    assert [(cfg.env.id, cfg.algo.name, cfg.total_timesteps, cfg.hardware.n_envs) for cfg in chosen] == [
        ("CartPole-v1", "ppo", 100_000, 8), ("CartPole-v1", "a2c", 500_000, 8),
        ("Pendulum-v1", "ppo", 100_000, 4), ("Pendulum-v1", "a2c", 1_000_000, 8),
    ]  # fmt: skip


def test_what_is_printed_is_what_is_trained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algo=ppo", "env=CartPole-v1", "--cfg", "job", "-p", "algo"]) == 0
    assert "learning_rate_schedule: linear" in capsys.readouterr().out


def test_settings_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "tuned" / "gym" / "FrozenLake-v1"
    own.mkdir(parents=True)
    (own / "ppo.yaml").write_text("# @package _global_\ntotal_timesteps: 7000\nalgo: {gamma: 0.5}\n")
    cfg = compose(["algo=ppo", "env=FrozenLake-v1"], [str(tmp_path)])
    assert (cfg.total_timesteps, cfg.algo.gamma) == (7000, 0.5)


@pytest.mark.parametrize("algo", ["acer"])
@pytest.mark.parametrize("experiment", ["acer_pendulum", "acer_lunar_lander", "acer_half_cheetah"])
def test_an_experiment_of_ours_is_the_tuned_file(algo: str, experiment: str) -> None:
    cfg = compose([f"algo={algo}", "env=gym", f"experiment={experiment}"])
    same = compose([f"algo={algo}", f"env={cfg.env.id}"])
    assert paths.learning(cfg) == paths.learning(same)
