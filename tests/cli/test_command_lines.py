"""Odd command lines: one line that names the key, exit code 2, no traceback, nothing left on disk."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlexp.cli import main
from tests.conftest import environment

TINY = ("env=gym", "env.id=CartPole-v1", "tuned=none", "total_timesteps=64")
PPO = ("algo=ppo", *TINY, "algo.n_steps=32", "algo.batch_size=16")
DQN = ("algo=dqn", *TINY)
SAC = ("algo=sac", "env=gym", "env.id=Pendulum-v1", "tuned=none", "total_timesteps=64")

# Arguments, and what the line must say.
CASES: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    # interpolation
    ((*PPO, "name=${a}"), ("name", "'a'")),
    ((*PPO, "name=${name}"), ("name", "itself")),
    ((*PPO, "output_dir=${output_dir}"), ("output_dir", "itself")),
    ((*PPO, "name=${oc.env:NOPE}"), ("name", "NOPE")),
    ((*PPO, "name=${foo:1}"), ("name", "foo")),
    (("-m", *PPO, "name=${a}", "seed=0,1"), ("name", "'a'")),
    # keys that are not there, and keys that are taken away
    ((*PPO, "~seed"), ("seed", "cannot be deleted")),
    ((*PPO, "~algo.gamma"), ("algo.gamma", "cannot be deleted")),
    ((*PPO, "+foo=1"), ("unknown key 'foo'", "total_timesteps")),
    ((*PPO, "+totl_timesteps=1"), ("did you mean 'total_timesteps'?",)),
    ((*PPO, "+algo.foo=1"), ("unknown key 'algo.foo'",)),
    ((*PPO, "+seed=1"), ("+seed=1", "write seed=1")),
    ((*PPO, "+experiment=lcpo_decay"), ("write experiment=lcpo_decay",)),
    # names that other tools use
    ((*PPO, "lr=1e-3"), ("unknown key 'lr': write algo.learning_rate=1e-3",)),
    ((*PPO, "algo.lr=1e-3"), ("unknown key 'algo.lr': write algo.learning_rate=1e-3",)),
    ((*PPO, "learning_rate=1e-3"), ("write algo.learning_rate=1e-3",)),
    ((*PPO, "steps=100k"), ("write total_timesteps=100k",)),
    ((*PPO, "gamma=0.9"), ("write algo.gamma=0.9",)),
    ((*PPO, "num_envs=4"), ("write hardware.n_envs=4",)),
    ((*PPO, "evalution.episodes=4"), ("write evaluation.episodes=4",)),
    (("algorithm=ppo",), ("write algo=ppo",)),
    (("ppo",), ("'ppo'", "write algo=ppo")),
    (("env=CartPole", "algo=ppo"), ("env=gym env.id=CartPole-v1",)),
    (("env=CartPole-v9", "algo=ppo", "total_timesteps=9"), ("did you mean 'CartPole-v1'?",)),
    (("env=CartPole-v1", "algo=ppo", "env.id=Acrobot-v1"), ("env=CartPole-v1", "env.id=Acrobot-v1")),
    ((*PPO, "total_timesteps=1.5"), ("total_timesteps", "'1.5'", "100k")),
    ((*PPO, "total_timesteps=0.0001k"), ("total_timesteps", "100k")),
    ((*PPO, "+evaluation.episode=1"), ("did you mean 'evaluation.episodes'?",)),
    (("algo=acer", "experiment=acer_pendulum"), ("env.id", "env=restaurant", "env=gym")),
    (("algo=ppo", "experiment=lcpo_decay"), ("algo.learning_rate_decay_steps", "algo=ppo", "algo=lcpo")),
    # paths
    ((*PPO, f"output_dir={'a' * 300}"), ("output_dir",)),
    ((*PPO, "output_dir='a\0b'"), ("output_dir",)),
    ((*PPO, "output_dir=/proc/nope"), ("output_dir", "/proc")),
    ((*PPO, "hydra.run.dir=/proc/nope"), ("hydra.run.dir", "output_dir")),
    (("-m", *PPO, "seed=0,1", "hydra.sweep.dir=/proc/nope"), ("hydra.sweep.dir", "/proc")),
    (("-m", *PPO, "seed=0,1", "hydra.sweep.subdir=x"), ("hydra.sweep.subdir", "output_dir")),
    (("report", "table1", "--output", "/proc/x"), ("--output", "/proc/x")),
    (("list", "runs", "/nope"), ("/nope", "output_dir=")),
    # sweeps
    (("-m", *PPO, "seed=glob(*)"), ("seed=glob(*)",)),
    (("-m", *PPO, "seed=range(0,0)"), ("seed=range(0,0)", "no value")),
    (("-m", *PPO, "seed=0-9999999999"), ("seed", "10,000")),
    (("-m", *PPO, "seed=0-99", "algo.gamma=range(0.1,0.9,0.001)"), ("algo.gamma", "10,000")),
    (("-m", *PPO, "hydra/launcher=joblib", "hydra.launcher.n_jobs=0"), ("hydra.launcher.n_jobs", "0")),
    (
        ("-m", *PPO, "hydra/launcher=joblib", "hydra.launcher.backend=nope"),
        ("hydra.launcher.backend", "loky"),
    ),
    (("-m", *PPO, "hydra/launcher=joblib", "hydra.launcher.batch_size=0"), ("hydra/launcher", "batch_size")),
    ((*PPO, "experiment=acer_pendulmu"), ("experiment", "did you mean 'acer_pendulum'")),
    ((*PPO, "experiment=acer_pendulmu", "--cfg", "job"), ("experiment", "'acer_pendulum'")),
    ((*PPO, "protocol=resturant"), ("protocol", "did you mean 'restaurant'")),
    ((*PPO, "tuned=restaurant/pppo"), ("tuned", "did you mean 'restaurant/ppo'")),
    (("-m", *PPO, f"hydra.sweep.dir={'a' * 300}"), ("hydra.sweep.dir", "too long")),
    (("-m", *PPO, "seed=0,1", "hydra.launcher._target_=os.system"), ("hydra.launcher", "os.system")),
    (("-m", *PPO, "seed=0,1", "hydra.sweeper._target_=foo.bar"), ("hydra.sweeper", "foo.bar")),
    (("-m", *PPO, "+hydra.callbacks.a._target_=os.system"), ("hydra.callbacks.a", "os.system")),
    (("-m", *PPO, "hydra/launcher=slurm"), ("hydra/launcher", "'slurm'", "basic", "joblib")),
    (("-m", *PPO, "hydra.launcher.n_job=2", "hydra/launcher=joblib"), ("hydra.launcher.n_job", "n_jobs")),
    # flags
    (("--nope",), ("--nope",)),
    (("-x",), ("-x",)),
    ((*PPO, "--multrun"), ("--multrun", "did you mean '--multirun'?")),
    ((*PPO, "--cfg"), ("--cfg", "job")),
    ((*PPO, "--cfg", "foo"), ("--cfg", "'foo'", "job")),
    ((*PPO, "--info", "foo"), ("--info", "'foo'")),
    (("--config-dir",), ("--config-dir",)),
    ((*PPO, "--config-name", "foo"), ("--config-name", "--config-dir")),
    ((*PPO, "--config-path", "/nope"), ("--config-path", "--config-dir")),
    ((*PPO, "--package", "foo", "--cfg", "job"), ("--package", "'foo'")),
    ((*PPO, "--resolve"), ("--resolve", "--cfg")),
    ((*PPO, "--algo", "lcpo"), ("--algo", "write algo=lcpo")),
    ((*PPO, "--seed", "3"), ("--seed", "write seed=3")),
    (("--seed=3", *PPO), ("--seed", "write seed=3")),
    ((*PPO, "--force"), ("--force", "write force=true")),
    ((*PPO, "--num-envs", "4"), ("--num-envs", "write hardware.n_envs=4")),
    (("list", "--output_dir", "x"), ("--output_dir", "write output_dir=x")),
    (("list", "algos", "--frobnicate"), ("--frobnicate", "without dashes")),
    (("--shell-completion",), ("--shell-completion", "install=bash")),
    (("-sc", "install=nope"), ("install=nope", "bash")),
    (("sweep", "table1", "--dryrun"), ("--dryrun", "did you mean '--dry-run'?")),
    (("sweep", "table1", "--jobs"), ("--jobs",)),
    (("sweep", "table1", "--jobs", "two"), ("--jobs", "'two'")),
    (("sweep", "tabel1"), ("'tabel1'", "did you mean 'table1'?")),
    (("report", "table1", "--strct"), ("--strct", "did you mean '--strict'?")),
    (("evaluate", "--episodes"), ("--episodes",)),
    (("demos", "--help=1"), ("--help",)),
    # algorithms that cannot be built like that
    ((*PPO, "algo.policy=CnnPolicy"), ("algo.policy", "CnnPolicy")),
    ((*PPO, "algo.policy=MultiInputPolicy"), ("algo.policy", "MultiInputPolicy")),
    ((*PPO, "algo.policy=MlpLstmPolicy"), ("algo.policy", "MlpLstmPolicy")),
    ((*PPO, "algo.name=a2c"), ("algo.name", "algo=")),
    ((*PPO, "env.name=restaurant"), ("env.name", "env=")),
    ((*PPO, "algo.net_arch=[true]"), ("algo.net_arch",)),
    ((*PPO, "algo.learning_rate=1e308"), ("algo.learning_rate", "1e+308")),
    ((*SAC, "algo.ent_coef=nope"), ("algo.ent_coef", "nope")),
    ((*SAC, "algo.ent_coef=null"), ("algo.ent_coef", "None")),
    ((*SAC, "algo.ent_coef=-1"), ("algo.ent_coef", "-1")),
    ((*SAC, "algo.ent_coef=auto_-1"), ("algo.ent_coef", "auto_-1")),
    ((*SAC, "algo.target_entropy=nope"), ("algo.target_entropy", "nope")),
    ((*SAC, "algo.target_entropy=null"), ("algo.target_entropy", "None")),
    (("algo=sac_lstm", *SAC[1:], "algo.ent_coef=nope"), ("algo.ent_coef", "nope")),
    ((*DQN, "algo.buffer_size=1", "algo.n_steps=5"), ("algo.n_steps", "buffer")),
    ((*DQN, "algo.alpha=2"), ("algo.alpha", "at most 1")),
    ((*DQN, "algo.learning_rate=nan"), ("algo.learning_rate", "nan")),
    # sizes far beyond memory
    ((*DQN, "algo.buffer_size=100000000000000"), ("algo.buffer_size", "memory")),
    ((*DQN, "algo.net_arch=[8]", "algo.batch_size=10000000000"), ("algo.batch_size", "memory")),
    ((*PPO, "algo.net_arch=[300000,300000]"), ("algo.net_arch", "memory")),
    ((*PPO, "algo.n_steps=100000000000"), ("algo.n_steps", "memory")),
    ((*PPO, "hardware.n_envs=9999999999"), ("hardware.n_envs", "at most")),
    ((*PPO, "hardware.torch_threads=99999999999"), ("hardware.torch_threads", "at most")),
    ((*PPO, "evaluation.n_envs=9999999999"), ("evaluation.n_envs", "at most")),
    ((*PPO, "evaluation.episodes=9999999999999"), ("evaluation.episodes", "at most")),
    ((*PPO, "evaluation.seed=1e26"), ("evaluation.seed", "1e+26")),
    ((*PPO, "evaluation.seed=99999999999999999999999999"), ("evaluation.seed", "at most")),
    # environments
    (("algo=random", "env=repeat_previous", "total_timesteps=9", "env.decks=99999999999"), ("env.decks",)),
    (("algo=random", "env=autoencode", "total_timesteps=9", "env.decks=99999999999"), ("env.decks",)),
    (("algo=ppo", "env=blind_cliffwalk", "total_timesteps=9", "env.n_states=99999999999"), ("env.n_states",)),
    (("algo=random", "env=datacenter", "env.weather_noise=1e300"), ("env.weather_noise", "1e+300")),
    (("algo=lcpo", "env.database=/dev/zero", "env.ontology=/dev/zero"), ("/dev/zero", "regular file")),
    (("algo=lcpo", "env.database=/dev/zero"), ("env.database",)),
    (("algo=random", "env=datacenter", "env.backend=surrogate", "env.weather=/dev/zero"), ("/dev/zero",)),
    (("algo=bc", "env=unlock_pickup", "total_timesteps=9", "algo.demonstrations=/dev/zero"), ("/dev/zero",)),
    (("algo=ppo", "env=gym", "env.id=Taxi-v3", "total_timesteps=64"), ("Taxi-v3",)),
    (("algo=ppo", "env=gym", "env.id=nope_module:X-v0", "total_timesteps=9"), ("env.id", "nope_module")),
    (("demos", "env=datacenter", "expert=bot"), ("expert", "datacenter")),
    (("demos", "env=unlock_pickup", "expert=/dev/zero"), ("expert", "/dev/zero")),
    # W&B, whose errors would come only after the run has begun
    ((*PPO, "tags=['']"), ("tags",)),
    ((*PPO, f"tags=[{'a' * 65}]"), ("tags", "64")),
    ((*PPO, "logger.project=a/b"), ("logger.project", "'a/b'")),
    ((*PPO, "logger.project=''"), ("logger.project",)),
    ((*PPO, f"name={'a' * 300}"), ("name", "128")),
]


@pytest.fixture(autouse=True)
def without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLEXP_TRACEBACK", raising=False)


@pytest.mark.parametrize(
    "arguments",
    [("sweep", "nope"), (*PPO, "zzqq=1"), (*PPO, "algo.zzqq=1"), ("frobnicate",), (*PPO, "env=zzqq")],
    ids=lambda arguments: arguments[-1],
)
def test_nothing_is_guessed_where_nothing_is_near(
    capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert main(list(arguments)) == 2
    line = capfd.readouterr().err
    assert "did you mean" not in line and "write" not in line


@pytest.mark.parametrize("order", ["flags first", "flags last"])
def test_flags_stand_before_or_after_overrides(capfd: pytest.CaptureFixture[str], order: str) -> None:
    flags, overrides = ["--cfg", "job"], ["algo=ppo", "output_dir=x"]
    assert main([*flags, *overrides] if order == "flags first" else [*overrides, *flags]) == 0
    assert "output_dir: x" in capfd.readouterr().out


def test_a_run_says_that_its_environment_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["algo=random", "total_episodes=1", "logger=none", "evaluation.episodes=1"]) == 0
    assert "random on restaurant (env not given; rlexp list envs)" in capfd.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "expected"), CASES, ids=[" ".join(case[0][-2:])[:80] for case in CASES]
)
def test_answered_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    expected: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    code = main(list(arguments))
    shown = capfd.readouterr()
    assert code == 2, shown
    lines = shown.err.strip().splitlines()
    assert len(lines) == 1, shown.err
    assert shown.out == ""
    for part in expected:
        assert part in lines[0], lines[0]
    assert list(tmp_path.iterdir()) == [], "something was left on disk"


def test_a_run_that_fails_before_it_trains_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever the checks before it overlook."""

    def fail(*_: object) -> None:
        raise OSError("no room\nfor it")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rlexp.runs.experiment.open_mirrors", fail)
    assert main([*PPO, "evaluation.episodes=0"]) == 2
    assert capfd.readouterr().err == "rlexp: ppo on gym-CartPole-v1: OSError: no room\n"
    assert list(tmp_path.iterdir()) == []


def test_what_fails_after_the_first_step_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from stable_baselines3 import PPO as SB3PPO

    def fail(self: SB3PPO) -> None:
        raise OSError("no room")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SB3PPO, "train", fail)
    assert main([*PPO, "logger=none"]) == 1
    assert "no room" in capfd.readouterr().err
    (record,) = tmp_path.glob("outputs/runs/*/*/*/*/record.json")
    assert '"failed"' in record.read_text()


def test_a_defect_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(argv: list[str]) -> int:
        raise KeyError("a thing\nof ours")

    monkeypatch.setattr("rlexp.cli.list.main", fail)
    assert main(["list"]) == 2
    assert capfd.readouterr().err.count("\n") == 1
    monkeypatch.setenv("RLEXP_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["list"])


OWN = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

gymnasium.register("Own-v0", entry_point=CartPoleEnv, max_episode_steps=20)
"""


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_an_environment_in_the_current_folder(tmp_path: Path, launcher: str) -> None:
    """From the console script, whose folder of modules is another; also in the processes of a launcher."""
    (tmp_path / "own_env.py").write_text(OWN)
    script = "import sys; from rlexp.cli import main; sys.exit(main())"
    result = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            script,
            "-m",
            "algo=random",
            "seed=0,1",
            "env=gym",
            "env.id=own_env:Own-v0",
        ]
        + ["total_timesteps=9", "logger=none", "evaluation.episodes=1", f"hydra/launcher={launcher}"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert "2 of 2 runs finished" in result.stdout


@pytest.fixture
def tab(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[[str], list[str]]:
    """What the shell is offered."""

    def press(line: str) -> list[str]:
        monkeypatch.setenv("COMP_LINE", line)
        monkeypatch.setenv("COMP_POINT", str(len(line)))
        assert main(["-sc", "query=bash"]) == 0
        shown = capfd.readouterr()
        assert shown.err == ""
        return shown.out.split()

    return press


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("rlexp sw", ["sweep"]),
        ("rlexp sweep table", ["table1", "table2"]),
        ("rlexp sweep table1 --dry", ["--dry-run"]),
        ("rlexp report restaurant_f", ["restaurant_fidelity"]),
        ("rlexp list alg", ["algos"]),
        ("rlexp algo=lcp", ["algo=lcpo"]),
        ("rlexp train algo=lcp", ["algo=lcpo"]),
        ("rlexp demos env=unlock_p", ["env=unlock_pickup"]),
        ("rlexp inf", ["info"]),
        (
            "rlexp info lcp",
            ["lcpo", "lcpo_envs", "lcpo_learning_rate", "lcpo_seeds", "lcpo_variants", "lcpo_decay"],
        ),
        ("rlexp res", ["resume"]),
        ("rlexp evaluate x evaluation.ep", ["evaluation.episodes="]),
        ("rlexp evaluate nowhere/", []),
        ("rlexp algo=nope algo.lear", []),
        ("rlexp algo=ppo 'name=${a", []),
    ],
)
def test_tab(tab: Callable[[str], list[str]], line: str, offered: list[str]) -> None:
    assert tab(line) == offered


def test_tab_offers_what_may_come_first(tab: Callable[[str], list[str]]) -> None:
    assert {"resume", "info", "algo=", "env=", "-m"} <= set(tab("rlexp "))


def test_tab_offers_run_folders(
    tab: Callable[[str], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trained, begun = (tmp_path / f"outputs/runs/gym/ppo/{name}/seed=0" for name in ("aa", "bb"))
    for folder in (trained, begun, trained.with_name("seed=0.previous-1")):
        folder.mkdir(parents=True)
        (folder / "config.yaml").touch()
        (folder / "record.json").touch()
    (trained / "model.zip").touch()
    (tmp_path / "outputs" / "link").symlink_to(tmp_path, target_is_directory=True)
    relative = [str(folder.relative_to(tmp_path)) for folder in (trained, begun)]
    assert tab("rlexp evaluate ") == relative[:1]
    assert tab("rlexp resume ") == relative
    assert tab("rlexp resume outputs/runs/gym/ppo/b") == relative[1:]
    assert tab(f"rlexp resume {tmp_path}/outp") == [str(trained), str(begun)]
    assert tab("rlexp report run ou") == relative
    assert tab("rlexp resume nope") == []


@pytest.mark.parametrize(
    "command", ["train", "list", "demos", "evaluate", "sweep", "report", "info", "resume"]
)
def test_help_shows_options_and_examples(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    options = {
        "sweep": ["--dry-run", "--jobs"],
        "report": ["--strict", "--reference"],
        "train": ["--multirun"],
    }
    assert main([command, "--help"]) == 0
    shown = capfd.readouterr().out
    assert f"usage: rlexp {command}" in shown and "examples:\n  rlexp " in shown
    assert all(option in shown for option in options.get(command, []))


def test_a_run_is_evaluated_on_a_task_that_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["algo=random", "env=restaurant", "logger=none", "evaluation.episodes=1"]) == 0
    (run,) = tmp_path.glob("outputs/runs/restaurant/random/*/seed=0")
    capfd.readouterr()
    assert main(["evaluate", str(run), "env.error_rate=2"]) == 2
    line = capfd.readouterr().err
    assert line.count("\n") == 1 and "env.error_rate" in line and "2" in line and "Traceback" not in line
    assert not (run / "evaluated.jsonl").exists()


@pytest.mark.slow
def test_hydras_own_help_beside_overrides(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*PPO, "--hydra-help"]) == 0
    assert "--multirun" in capfd.readouterr().out
