"""``rlexp evaluate RUN`` repeats what the run recorded at its end, to the last digit, for every algorithm."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rlexp import registry
from rlexp.algos.controllers.controllers import RandomPolicy
from rlexp.cli import demos, evaluate
from rlexp.config import compose, paths
from rlexp.demonstrations import collect, dataset, storage
from rlexp.envs.cards.env import RepeatPreviousEnv
from rlexp.runs import folder as run_folder
from rlexp.runs.experiment import Experiment

EPSILON = (
    "algo.exploration_fraction=1.0",
    "algo.exploration_final_eps=0.3",
    "algo.exploration_initial_eps=1.0",
)
SEQUENCES = ("algo.sequence_length=8", "algo.burn_in=2", "algo.sequence_period=4", "algo.batch_size=4")
ROLLOUTS = ("algo.n_steps=64", "algo.batch_size=32", "algo.n_epochs=2")
SMALL: dict[str, tuple[str, ...]] = {
    "ppo": ROLLOUTS,
    "a2c": (),
    "sac": ("algo.learning_starts=50", "algo.train_freq=16"),
    "recurrent_ppo": (*ROLLOUTS, "algo.lstm_hidden_size=8"),
    "lcpo": ROLLOUTS,
    "tam": (*ROLLOUTS, "algo.user_model_updates=4", "algo.mask_after=60"),
    "acer": ("algo.learning_starts=60",),
    "dqn": ("algo.learning_starts=50", *EPSILON),
    "dqfd": ("algo.learning_starts=50", "algo.pretrain_updates=10", *EPSILON),
    "r2d2": ("algo.learning_starts=50", *SEQUENCES, *EPSILON),
    "r2d3": ("algo.learning_starts=50", "algo.pretrain_updates=10", *SEQUENCES, *EPSILON),
    "bc": ("algo.updates_per_round=2", *SEQUENCES),
    "sac_lstm": (
        "algo.learning_starts=50",
        "algo.train_freq=16",
        "algo.lstm_hidden_size=8",
        "algo.sequence_length=4",
    ),
    "slac": (
        "algo.learning_starts=50",
        "algo.train_freq=16",
        "algo.pretrain_updates=2",
        "algo.sequence_length=4",
    ),
}
CONTROLLED = {"handcrafted": ("env=restaurant",)}
PLANT = (
    "env=datacenter",
    "env.backend=surrogate",
    "env.days=10",
    "evaluation.episodes=1",
    "evaluation.n_envs=1",
)


def env_for(spec: registry.AlgoSpec) -> tuple[str, ...]:
    if spec.controller is not None:
        return CONTROLLED.get(spec.name, PLANT)
    return ("env=repeat_previous",) if "discrete" in spec.actions else ("env=pendulum_p",)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Demonstrations by chance, on the environment of the learners that need some."""
    env = RepeatPreviousEnv(**_options("repeat_previous"))
    chance = collect.by_model(RandomPolicy("", env), False, False)
    episodes, _ = collect.record([env], chance, collect.episode_seeds(0, 3), 0, lambda *_: None)
    path = tmp_path_factory.mktemp("demonstrations") / "chance.npz"
    spaces = env.observation_space, env.action_space
    storage.write(path, dataset.Demonstrations(tuple(episodes), *spaces, {}))
    return path


def _options(name: str) -> dict[str, Any]:
    cfg = compose.compose([f"env={name}", "algo=random", "total_timesteps=1"])
    return {str(key): value for key, value in cfg.env.items() if key != "name"}


def run(arguments: list[str], folder: Path) -> dict[str, Any]:
    """Train as ``rlexp`` does, in this process."""
    cfg = compose.compose([*arguments, f"output_dir={folder}", "logger=none"])
    into = paths.run_dir(cfg)
    into.mkdir(parents=True)
    final = Experiment(cfg, into, {"overrides": arguments, "choices": {}}, Console(file=io.StringIO())).run()
    return {"folder": into, "final": final}


def measured(row: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of a row; which step they belong to and how long they took is beside them."""
    beside = ("wall_s", "episodes", "timesteps", "updates", "overrides", "at")
    return {key: value for key, value in row.items() if key not in beside}


@pytest.mark.parametrize("deterministic", [True, False], ids=["greedy", "sampled"])
@pytest.mark.parametrize("name", sorted(registry.algos()))
def test_evaluate_repeats_the_recorded_one(
    name: str, deterministic: bool, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = registry.algo(name)
    arguments = [f"algo={name}", "total_timesteps=200", "evaluation.episodes=4", "evaluation.n_envs=2"]
    arguments += [
        *env_for(spec),
        *SMALL.get(name, ()),
        f"evaluation.deterministic={str(deterministic).lower()}",
    ]
    if name in ("bc", "dqfd", "r2d3"):
        arguments.append(f"algo.demonstrations={file}")
    found = run(arguments, tmp_path)
    assert evaluate.main([str(found["folder"])]) == 0
    (row,) = run_folder.read_jsonl(found["folder"] / evaluate.EVALUATED)
    assert measured(row) == measured(found["final"])
    assert measured(row) == measured(run_folder.read_record(found["folder"])["evaluation"])


@pytest.mark.parametrize("name", ["dqn", "r2d2"])
def test_sampled_demonstrations_explore_as_the_run_did_at_its_end(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At rate 1 episodes are played by chance, at rate 0 by the policy alone; ask the expert which it was."""
    arguments = [f"algo={name}", "env=repeat_previous", "total_timesteps=100", "evaluation.episodes=0"]
    folder = run([*arguments, *SMALL[name]], tmp_path)["folder"]
    used: list[float] = []
    play = collect.record

    def record_and_ask(*args: Any) -> Any:
        used.append(args[-1].exploration_rate)
        return play(*args)

    monkeypatch.setattr(collect, "record", record_and_ask)
    files = [tmp_path / f"{number}.npz" for number in range(2)]
    for file in files:
        assert demos.main([f"expert={folder}", "episodes=2", "deterministic=false", f"output={file}"]) == 0
    assert used == [pytest.approx(0.3, abs=0.02)] * 2
    first, second = (storage.read(file).episodes for file in files)
    assert [one.actions.tolist() for one in first] == [one.actions.tolist() for one in second]
