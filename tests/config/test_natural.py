"""What people type, and what the config says."""

from __future__ import annotations

import pytest

from rlexp.config import paths
from rlexp.config.compose import compose
from rlexp.config.hydra_app import hydra_app
from rlexp.config.natural import translate, whole_number
from rlexp.config.unknown_key import known_as, static_keys
from rlexp.errors import UsageError

_PPO = ("algo=ppo", "env=gym", "env.id=CartPole-v1", "tuned=none")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e5", 100_000),
        ("1E+5", 100_000),
        ("100k", 100_000),
        ("1M", 1_000_000),
        ("1.5k", 1500),
        ("50_000", 50_000),
        ("50_000k", 50_000_000),
        ("12", 12),
        ("-3", -3),
        ("100e-2", 1),
        ("1.5", None),
        ("1.2345k", None),
        ("1e-3", None),
        ("k", None),
        ("1e", None),
        ("1kk", None),
        ("1e999999999", None),
        ("nan", None),
        ("null", None),
        ("", None),
    ],
)
def test_whole_numbers(text: str, number: int | None) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["1e5", "100k", "0.1M", "100_000"])
def test_a_number_means_the_same_however_it_is_written(text: str) -> None:
    plain, typed = (
        compose([*_PPO, f"total_timesteps={one}", "algo.n_steps=1024"]) for one in ("100000", text)
    )
    assert typed.total_timesteps == 100_000 and isinstance(typed.total_timesteps, int)
    assert paths.variant(typed) == paths.variant(plain)


def test_only_integers_are_translated() -> None:
    cfg = compose([*_PPO, "total_timesteps=1k", "name=100k", "algo.n_steps=1k", "algo.learning_rate=1e-3"])
    assert (cfg.name, cfg.algo.n_steps, cfg.algo.learning_rate) == ("100k", 1000, 1e-3)


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        (["env=CartPole-v1"], ["env=gym", "env.id=CartPole-v1"]),
        (["env=MiniGrid-Empty-5x5-v0"], ["env=minigrid", "env.id=MiniGrid-Empty-5x5-v0"]),
        (["env=BabyAI-GoTo-v0"], ["env=minigrid", "env.id=BabyAI-GoTo-v0"]),
        (["env=ALE/Pong-v5"], ["env=gym", "env.id=ALE/Pong-v5"]),
        (["env=my.module:Mine-v0"], ["env=gym", "env.id=my.module:Mine-v0"]),
        (["env=CartPole-v1", "env.id=CartPole-v1"], ["env=gym", "env.id=CartPole-v1", "env.id=CartPole-v1"]),
        (["env=rlexp/Restaurant-v0"], ["env=restaurant"]),
        (["env=cartpole_v"], ["env=cartpole_v"]),
        (["env=CartPole-v1,Acrobot-v1"], ["env=CartPole-v1,Acrobot-v1"]),
        (["env=nope"], ["env=nope"]),
        (["normalize=true"], ["normalize.observations=true", "normalize.rewards=true"]),
    ],
)
def test_environments(typed: list[str], plain: list[str]) -> None:
    with hydra_app() as app:
        assert translate(app, typed) == plain


def test_an_environment_means_the_same_however_it_is_written() -> None:
    short = compose(["algo=ppo", "env=CartPole-v1", "tuned=none", "total_timesteps=9000"])
    assert paths.run_dir(short) == paths.run_dir(compose([*_PPO, "total_timesteps=9000"]))


@pytest.mark.parametrize("env", ["minatar", "unlock_pickup", "blocked_unlock_pickup", "key_corridor"])
def test_tuned_settings_bring_the_environments_that_they_need(env: str) -> None:
    assert compose(["algo=ppo", f"env={env}", "total_timesteps=1"]).hardware.n_envs >= 8
    with pytest.raises(UsageError, match=r"algo\.n_steps x hardware\.n_envs"):
        compose(["algo=ppo", f"env={env}", "total_timesteps=1", "hardware.n_envs=1"])


def test_two_environments_are_one_too_many() -> None:
    with hydra_app() as app, pytest.raises(UsageError, match="write one of them"):
        translate(app, ["env=CartPole-v1", "env.id=Acrobot-v1"])


def test_a_name_of_another_tool_leads_to_a_key_that_there_is() -> None:
    """Whatever the table promises exists for some algorithm."""
    from rlexp.config.unknown_key import _MEANT

    keys = static_keys()
    for alias, key in _MEANT.items():
        written = known_as(alias, "1", keys)
        assert written is not None, alias
        assert written == f"{key}=1" or written.endswith(f".{key}=1"), (alias, written)
