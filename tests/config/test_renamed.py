"""Keys that were renamed: the old name is answered by the new one, old runs are read, folders stay the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from rlexp.config import paths, renamed
from rlexp.config.compose import compose
from rlexp.errors import UsageError
from rlexp.runs.stored import read_config

_ARGUMENTS = [
    "algo=dqn",
    "algo.replay=uniform",
    "env=gym",
    "env.id=CartPole-v1",
    "tuned=none",
    "total_timesteps=10",
]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that two settings of DQN once had other names."""
    monkeypatch.setitem(renamed.RENAMED, "algo.trains_every", "algo.train_freq")
    monkeypatch.setitem(renamed.RENAMED_VALUES, "algo.replay", {"even": "uniform"})


def _old(arguments: list[str]) -> dict:
    """The config as a version with the old names wrote it."""
    config = paths.resolved(compose(arguments))
    config["algo"]["trains_every"] = config["algo"].pop("train_freq")
    config["algo"]["replay"] = "even"
    config["checkpoint"]["keep"] = config["checkpoint"].pop("keep_last")
    return config


@pytest.mark.parametrize(
    ("argument", "answer"),
    [
        (
            "checkpoint.keep=3",
            "checkpoint.keep: is now called checkpoint.keep_last; write checkpoint.keep_last=3",
        ),
        ("algo.trains_every=2", "algo.trains_every: is now called algo.train_freq; write algo.train_freq=2"),
        ("algo.replay=even", "'even' is now called 'uniform'"),
        ("algo.trains_evry=2", "unknown key"),
    ],
)
def test_an_old_name_is_answered_by_the_new_one(table: None, argument: str, answer: str) -> None:
    with pytest.raises(UsageError) as raised:
        compose([*_ARGUMENTS, argument])
    assert answer in str(raised.value)


def test_the_config_of_an_old_run_is_read_with_the_present_names(table: None, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(OmegaConf.to_yaml(OmegaConf.create(_old([*_ARGUMENTS, "algo.train_freq=7"]))))
    assert paths.resolved(read_config(path)) == paths.resolved(compose([*_ARGUMENTS, "algo.train_freq=7"]))


def test_the_variant_of_unchanged_settings_stays(table: None, monkeypatch: pytest.MonkeyPatch) -> None:
    now = paths.variant(compose(_ARGUMENTS))
    old = OmegaConf.create(_old(_ARGUMENTS))
    monkeypatch.setattr(renamed, "RENAMED", {})
    monkeypatch.setattr(renamed, "RENAMED_VALUES", {})
    assert now == paths.variant(old)


@pytest.mark.parametrize("algo", ["somebodys_own", "lcpo"])
def test_the_same_name_elsewhere_is_left_alone(table: None, algo: str) -> None:
    config = {"algo": {"name": algo, "trains_every": 1, "replay": "even"}, "env": {"trains_every": 2}}
    assert renamed.with_new_names(config) == config
    other = {"algo": {"name": algo, "train_freq": 1, "replay": "uniform"}}
    assert renamed.with_old_names(other) == other


def test_a_key_is_renamed_within_its_group() -> None:
    for old, new in renamed.RENAMED.items():
        assert old.rpartition(".")[0] == new.rpartition(".")[0], old
