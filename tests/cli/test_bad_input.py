"""What cannot be done is rejected with one clear line, with exit code 2, and nothing is left on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlexp.cli import main
from tests.conftest import CARTPOLE

GYM = ("env=gym", "env.id=CartPole-v1", "tuned=none", "total_timesteps=100")
RESTAURANT = ("algo=lcpo", "env=restaurant")

CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "unknown algorithm": (("algo=lcop", *GYM), ("algo", "'lcop'", "did you mean 'lcpo'?")),
    "unknown environment": (
        ("algo=ppo", "env=resturant"),
        ("env", "'resturant'", "did you mean 'restaurant'?"),
    ),
    "unknown group": (("alg=ppo", "algo=ppo", *GYM), ("alg", "write algo=ppo")),
    "no algorithm": (("env=restaurant",), ("algo: not given", "lcpo", "ppo")),
    "an alias without an algorithm": (("lr=3",), ("'lr'", "write algo.learning_rate=3")),
    "unknown id without a budget": (("algo=ppo", "env=CartPole-v2"), ("'CartPole-v2'", "'CartPole-v1'")),
    "unknown hardware": (("algo=ppo", *GYM, "hardware=tpu"), ("hardware", "'tpu'", "cpu", "gpu")),
    "unknown logger": (("algo=ppo", *GYM, "logger=wand"), ("logger", "'wand'", "tensorboard", "wandb")),
    "former logger key": (("algo=ppo", *GYM, "logger.wandb=online"), ("logger.mode=online",)),
    "nothing to be shown": (
        ("algo=random", "env=repeat_previous", "total_timesteps=9", "logger.show_episode=true"),
        ("logger.show_episode",),
    ),
    "unknown benchmark": ((*RESTAURANT, "env/benchmark=env7"), ("env/benchmark", "'env7'", "env4")),
    "misspelt key": (("algo=ppo", *GYM, "algo.learning_rat=1"), ("did you mean 'algo.learning_rate'?",)),
    "misspelt top key": (("algo=ppo", *GYM, "total_timestep=1"), ("did you mean 'total_timesteps'?",)),
    "misspelt nested key": (
        ("algo=ppo", *GYM, "evaluation.episode=1"),
        ("did you mean 'evaluation.episodes'?",),
    ),
    "key of another group": (
        ("algo=ppo", *GYM, "env.learning_rate=1"),
        ("env.learning_rate", "write algo.learning_rate=1"),
    ),
    "text for a number": (
        ("algo=ppo", *GYM, "algo.learning_rate=fast"),
        ("algo.learning_rate", "'fast'", "Float"),
    ),
    "text for a whole number": (
        ("algo=ppo", *GYM, "total_timesteps=many"),
        ("total_timesteps", "'many'", "whole number"),
    ),
    "fraction for a whole number": (
        ("algo=ppo", *GYM, "algo.n_steps=2.5"),
        ("algo.n_steps", "2.5", "whole number"),
    ),
    "text for a flag": ((*RESTAURANT, "algo.clip_gae=maybe"), ("algo.clip_gae", "'maybe'", "bool")),
    "empty value": (("algo=ppo", *GYM, "seed="), ("seed", "''")),
    "missing budget": (
        ("algo=ppo", "env=gym", "env.id=CartPole-v1", "tuned=none"),
        ("total_timesteps", "no budget"),
    ),
    "missing id": (("algo=ppo", "env=gym", "total_timesteps=100"), ("env.id", "no value given")),
    "negative budget": (
        ("algo=ppo", *GYM[:2], "total_timesteps=-5"),
        ("total_timesteps", "-5", "at least 1"),
    ),
    "zero episodes": ((*RESTAURANT, "total_episodes=0"), ("total_episodes", "0 given", "at least 1")),
    "negative seed": (("algo=ppo", *GYM, "seed=-1"), ("seed", "-1", "at least 0")),
    "zero learning rate": (
        ("algo=ppo", *GYM, "algo.learning_rate=0"),
        ("algo.learning_rate", "greater than 0"),
    ),
    "gamma above one": (("algo=ppo", *GYM, "algo.gamma=1.5"), ("algo.gamma", "1.5", "at most 1")),
    "infinite learning rate": (
        ("algo=ppo", *GYM, "algo.learning_rate=inf"),
        ("algo.learning_rate", "finite"),
    ),
    "unknown activation": (
        ("algo=ppo", *GYM, "algo.activation_fn=Relu"),
        ("algo.activation_fn", "'Relu'", "ReLU"),
    ),
    "unknown policy": (
        ("algo=ppo", *GYM, "algo.policy=MlpPolcy"),
        ("algo.policy", "did you mean 'MlpPolicy'?"),
    ),
    "unknown device": (("algo=ppo", *GYM, "hardware.device=gpu"), ("hardware.device", "'gpu'", "cuda")),
    "network without layers": (("algo=ppo", *GYM, "algo.net_arch=5"), ("algo.net_arch", "list")),
    "network with no units": (("algo=ppo", *GYM, "algo.net_arch=[64,0]"), ("algo.net_arch", "positive")),
    "batch above rollout": (
        ("algo=ppo", *GYM, "algo.n_steps=8", "algo.batch_size=64"),
        ("algo.batch_size", "64"),
    ),
    "continuous algorithm, discrete task": (
        ("algo=sac", *RESTAURANT[1:]),
        ("sac is not compatible", "discrete", "lcpo"),
    ),
    "discrete algorithm, continuous task": (
        ("algo=lcpo", "env=gym", "env.id=Pendulum-v1", "total_timesteps=100"),
        ("lcpo is not compatible", "continuous actions", "sac"),
    ),
    "no such controller": (("algo=handcrafted", *GYM), ("handcrafted is not compatible", "random")),
    "masks without a reader": (
        ("algo=recurrent_ppo", "env=restaurant", "env.masks=true"),
        ("action masks", "lcpo"),
    ),
    "unregistered environment": (
        ("algo=ppo", "env=gym", "env.id=CartPol-v1", "total_timesteps=9"),
        ("CartPole",),
    ),
    "unknown environment argument": (("algo=ppo", *GYM, "+env.kwargs.foo=3"), ("CartPole-v1", "foo")),
    "sweep without -m": (("algo=ppo", *GYM, "seed=range(0,3)"), ("seed=range(0,3)", "add -m")),
    "shell-safe range without -m": (("algo=ppo", *GYM, "seed=0-3"), ("add -m",)),
    "range backwards": (("-m", "algo=ppo", *GYM, "seed=4-2"), ("seed=2-4",)),
    "one bad job of many": (("-m", "algo=ppo,lcop", *GYM), ("'lcop'", "did you mean 'lcpo'?")),
    "one incompatible algorithm of many": (("-m", "algo=ppo,sac", *GYM), ("sac is not compatible",)),
    "unclosed bracket": (("algo=ppo", *GYM, "algo.net_arch=[64"), ("algo.net_arch=[64", "cannot be read")),
    "no equals sign": (("algo=ppo", *GYM, "verbose"), ("verbose", "key=value")),
    "unknown command": (("trian", "algo=ppo"), ("'trian'", "did you mean 'train'?")),
    "unknown list": (("list", "algorithms"), ("'algorithms'", "algos")),
    "output folder is a file": (("algo=ppo", *GYM, "output_dir=/dev/null/x"), ("output_dir", "/dev/null")),
    "no such error model": ((*RESTAURANT, "env.error_model=set2"), ("env.error_model", "set1, set3, random")),
    "error rate above one": ((*RESTAURANT, "env.error_rate=15"), ("env.error_rate", "15", "at most 1")),
    "demonstrations nowhere": (
        ("demos", "env=unlock_pickup", "expert=bot", "episodes=1", "output=/dev/null/x.npz"),
        ("output", "/dev/null"),
    ),
    "demonstrations with NUL": (
        ("demos", "env=unlock_pickup", "expert=bot", "episodes=1", "output=a\0b.npz"),
        ("output", "NUL"),
    ),
    "sweep nowhere": (("sweep", "table1", "output_dir=/dev/null/x"), ("output_dir", "/dev/null")),
    "no such action": ((*RESTAURANT, "env.disabled_actions=[dance]"), ("disabled_actions", "dance")),
    "no such database": ((*RESTAURANT, "env.database=nowhere.db", "env.ontology=no.json"), ("nowhere.db",)),
    "no such run": (("evaluate", "nowhere"), ("nowhere", "no run here")),
    "no such config folder": (("--config-dir", "nowhere", "algo=ppo", *GYM), ("--config-dir", "nowhere")),
}


@pytest.mark.parametrize("name", CASES)
def test_rejected_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    arguments, expected = CASES[name]
    monkeypatch.chdir(tmp_path)
    code = main(list(arguments))
    shown = capfd.readouterr()
    assert code == 2, shown
    lines = shown.err.strip().splitlines()
    assert len(lines) == 1, shown.err
    for part in expected:
        assert part in lines[0], lines[0]
    assert "Traceback" not in shown.out + shown.err
    assert "+alg" not in lines[0], "Hydra's misleading hint"
    assert list(tmp_path.iterdir()) == [], "something was left on disk"


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\x00garbage"])
def test_malformed_database(rlexp, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "venues.db").write_bytes(content)
    (tmp_path / "ontology.json").write_text("{}")
    result = rlexp(*RESTAURANT, "env.database=venues.db", "env.ontology=ontology.json")
    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"venues.db", "ontology.json"}


def test_traceback_on_request(rlexp) -> None:
    result = rlexp("algo=lcop", *GYM, env={"RLEXP_TRACEBACK": "1"})
    assert result.returncode == 1
    assert "Traceback" in result.stderr


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("record.json", "{", "record.json cannot be read"),
        ("record.json", '{"status": "dancing"}', "no valid status"),
        ("config.yaml", "seed: [", "config.yaml cannot be read"),
        ("config.yaml", "seed: 3\n", "config.yaml"),
        ("config.yaml", None, "config.yaml is missing"),
    ],
)
def test_damaged_run_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    file: str,
    content: str | None,
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = [*CARTPOLE, "total_timesteps=64", "evaluation.episodes=0"]
    assert main(arguments) == 0
    (folder,) = tmp_path.glob("outputs/runs/*/*/*/seed=0")
    if file == "config.yaml":  # an unfinished run, so that it would be resumed
        record = folder / "record.json"
        record.write_text(record.read_text().replace('"finished"', '"interrupted"'))
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    capfd.readouterr()
    code = main(arguments)
    shown = capfd.readouterr()
    assert code == 2, shown
    assert expected in shown.err and "force=true" in shown.err
    assert len(shown.err.strip().splitlines()) == 1


def test_fidelity_report_into_a_folder_of_ones_own(rlexp, tmp_path: Path) -> None:
    arguments = ("report", "restaurant_fidelity", "tables=1", "dialogues=2", "--output", "mine")
    result = rlexp(*arguments)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "mine" / "restaurant_fidelity.md").is_file()
