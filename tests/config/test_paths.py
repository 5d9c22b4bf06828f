"""The same settings always mean the same folder; other settings never do."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlexp.config import paths
from rlexp.config.compose import compose
from rlexp.runs.stored import read_config, read_record

_ARGUMENTS = ["algo=lcpo", "env=restaurant"]
_REFERENCE = Path(__file__).parents[2] / "outputs" / "reference"


@pytest.mark.parametrize(
    "argument",
    [
        "seed=7",
        "logger=none",
        "name=mine",
        "tags=[a]",
        "force=true",
        "output_dir=elsewhere",
        "hardware.device=auto",
        "hardware.torch_threads=2",
        "checkpoint.keep_last=5",
        "evaluation.episodes=10",
        "evaluation.every_episodes=null",
    ],
)
def test_bookkeeping_does_not_change_the_variant(argument: str) -> None:
    assert paths.variant(compose(_ARGUMENTS)) == paths.variant(compose([*_ARGUMENTS, argument]))


@pytest.mark.parametrize(
    "argument",
    [
        "algo.learning_rate=1e-4",
        "env.error_rate=0.3",
        "total_episodes=100",
        "hardware.n_envs=2",
    ],
)
def test_what_is_learned_changes_the_variant(argument: str) -> None:
    assert paths.variant(compose(_ARGUMENTS)) != paths.variant(compose([*_ARGUMENTS, argument]))


def test_the_order_of_overrides_does_not_matter() -> None:
    arguments = ["algo.gamma=0.9", "env.max_turns=20", "seed=3"]
    backwards = list(reversed(arguments))
    assert paths.run_dir(compose([*_ARGUMENTS, *arguments])) == paths.run_dir(
        compose([*_ARGUMENTS, *backwards])
    )


def test_folder_names() -> None:
    cfg = compose(
        ["algo=ppo", "env=gym", "env.id=ALE/Pong-v5", "total_timesteps=10", "output_dir=/tmp/x", "seed=4"]
    )
    folder = paths.run_dir(cfg)
    assert folder.parts[-1] == "seed=4" and folder.parts[-3:-1][0] == "ppo"
    assert folder.parts[-4] == "gym-ALE_Pong-v5"


@pytest.mark.parametrize(
    "run",
    [
        "r2d2_memory/r2d2",
        "pomdp/v_sac-lstm_no_reward_seen",
        "acer_pong/pong",
        "per/freeway_rank",
    ],
)
def test_the_variants_of_earlier_versions_are_still_known(run: str) -> None:
    folders = list((_REFERENCE / run).glob("seed=*"))
    for folder in folders:
        variant = read_record(folder / "record.json")["variant"]
        assert paths.earlier_variant(read_config(folder / "config.yaml")) == variant
    assert folders
