# ruff: noqa: E501
"""Odd command lines: every key with values it cannot have, every choice misspelt, every option of every command."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.attack import judge, sandbox

SECONDS = 120.0  # on a machine that does other things; a case takes about one
_TINY = (
    "env=gym",
    "env.id=CartPole-v1",
    "tuned=none",
    "total_timesteps=64",
    "evaluation.episodes=1",
    "logger=none",
)
PPO = ("algo=ppo", *_TINY, "algo.n_steps=32", "algo.batch_size=16", "algo.n_epochs=1", "algo.net_arch=[8]")
DQN = (
    "algo=dqn",
    *_TINY,
    "algo.learning_starts=8",
    "algo.batch_size=8",
    "algo.buffer_size=100",
    "algo.net_arch=[8]",
)
SAC = (
    "algo=sac", "env=gym", "env.id=Pendulum-v1", "tuned=none", "total_timesteps=32", "evaluation.episodes=1", "logger=none",
    "algo.learning_starts=8", "algo.batch_size=8", "algo.buffer_size=100", "algo.net_arch=[8]",
)  # fmt: skip
LCPO = ("algo=lcpo", "env=restaurant", "total_episodes=3", "evaluation.episodes=1", "logger=none")


@dataclass(frozen=True)
class Case:
    """A command line.

    :param allowed: exit codes that are right
    :param prepare: fills the folder in which it runs
    """

    name: str
    argv: tuple[str, ...]
    allowed: tuple[int, ...] = (0, 2)
    prepare: Callable[[Path], None] | None = None


_CANARY = f"../{sandbox.CANARY}"
VALUES: dict[str, str] = {
    "text": "abc",
    "empty": "",
    "null": "null",
    "negative": "-1",
    "zero": "0",
    "fraction": "0.5",
    "huge": "99999999999999999999",
    "infinite": "inf",
    "nan": "nan",
    "beyond float": "1e400",
    "list": "[1,2]",
    "nested": "{a:{b:[1]}}",
    "true": "true",
    "unicode": "ünï☃",
    "emoji list": "[🐍]",
    "nul": "'a\0b'",
    "escape": "'\x1b[31mred\x1b[0m'",
    "markup": "'[/red]'",
    "unknown interpolation": "${nope}",
    "itself": "${%s}",
    "environment": "${oc.env:NOPE_NOT_SET}",
    "resolver": "${nope:1}",
    "quoted": "'\"'",
    "open quote": "'abc",
    "open bracket": "[1,2",
    "open brace": "{a:1",
    "sweep": "1,2",
    "range": "range(1,3)",
    "glob": "glob(*)",
    "command": f"$(touch {_CANARY})",
    "backtick": f"`touch {_CANARY}`",
    "semicolon": f"1; touch {_CANARY}",
    "yaml tag": f"!!python/object/apply:os.system [touch {_CANARY}]",
    "parent path": "../../../x",
    "device": "/dev/zero",
    "long": "x" * 5000,
    "newline": "'a\nb'",
    "equals": "a=b=c",
    "space": "' '",
    "hexadecimal": "0xff",
    "underscores": "1_0",
}
"""What keys are set to, by what is odd about it."""

# A run with more than this is as it should be, only long.
_LONG = {"total_timesteps", "total_episodes", "algo.n_epochs", "algo.gradient_steps", "evaluation.episodes"}
# With that much, training may become infinite: a run that fails, and nothing wrong with the command.
_DIVERGES = {"algo.learning_rate", "algo.vf_coef", "algo.ent_coef", "algo.clip_range"}


def keys(overrides: tuple[str, ...]) -> list[str]:
    """Return every key of the config of a run but the ones above others."""
    from rlexp.config import compose

    found: list[str] = []

    def walk(node: object, prefix: str) -> None:
        for key in node:  # type: ignore[attr-defined]
            value = node[key]  # type: ignore[index]
            if hasattr(value, "items") and len(value):
                walk(value, f"{prefix}{key}.")
            else:
                found.append(f"{prefix}{key}")

    walk(compose.compose(list(overrides)), "")
    return found


def _values(generator: random.Random) -> Iterator[Case]:
    seen: set[str] = set()
    for base, label in ((PPO, "ppo"), (DQN, "dqn"), (SAC, "sac"), (LCPO, "lcpo")):
        for key in keys(base):
            if key in seen or key in ("algo.name", "env.name"):
                continue
            if not key.startswith(("algo.", "env.")):
                seen.add(key)
            kinds = [
                kind
                for kind in VALUES
                if not (key in _LONG and kind in ("huge", "underscores", "hexadecimal"))
            ]
            for kind in generator.sample(kinds, 2 if label == "ppo" else 1):
                value = VALUES[kind]
                value = value % key if "%s" in value else value
                allowed = (0, 1, 2) if kind == "huge" and key in _DIVERGES else (0, 2)
                yield Case(f"{label} {key}: {kind}", (*base, f"{key}={value}"), allowed)
    for key in ("seed", "algo.learning_rate"):
        for kind, value in VALUES.items():
            allowed = (0, 1, 2) if kind == "huge" and key in _DIVERGES else (0, 2)
            yield Case(
                f"ppo {key}: {kind}", (*PPO, f"{key}={value % key if '%s' in value else value}"), allowed
            )


def _misspelt(word: str, generator: random.Random) -> Iterator[str]:
    places = [place for place in range(1, len(word)) if word[place] != word[place - 1]]  # a swap changes it
    place = generator.choice(places)
    yield word[:place] + word[place + 1 :]
    yield word[: place - 1] + word[place] + word[place - 1] + word[place + 1 :]
    yield word.upper()


def _choices(generator: random.Random) -> Iterator[Case]:
    groups = {
        "algo": ("ppo", "recurrent_ppo", "slac"),
        "env": ("restaurant", "datacenter", "minatar", "pong"),
        "hardware": ("cpu", "gpu"),
        "logger": ("none", "wandb_offline"),
        "evaluation": ("default",),
        "checkpoint": ("default",),
        "experiment": ("ppo_tuned", "acer_pendulum"),
        "env/benchmark": ("env1",),
        "protocol": ("restaurant",),
        "hydra/launcher": ("joblib",),
    }
    for group, options in groups.items():
        for option in options:
            for wrong in _misspelt(option, generator):
                yield Case(f"choice {group}={wrong}", (*PPO, f"{group}={wrong}"), (2,))
        for value in (
            "",
            "null",
            "[a,b]",
            "../../etc/passwd",
            "/etc/passwd",
            "_builtin",
            "default.yaml",
            "a/b/c",
        ):
            yield Case(f"choice {group}={value}", (*PPO, f"{group}={value}"))
    for word in ("algo", "total_timesteps", "evaluation.episodes", "algo.learning_rate", "hardware.n_envs"):
        for wrong in _misspelt(word, generator):
            yield Case(f"key {wrong}", (*PPO, f"{wrong}=1"), (2,))
            yield Case(f"key +{wrong}", (*PPO, f"+{wrong}=1"), (2,))


def _flags() -> Iterator[Case]:
    yield from (
        Case(f"flags {' '.join(flags)}", (*PPO, *flags))
        for flags in (
            ("--nope",), ("-x",), ("--cfg",), ("--cfg", "foo"), ("--cfg", "job"), ("--cfg", "hydra"), ("--cfg", "all"),
            ("--info",), ("--info", "plugins"), ("--info", "nope"), ("--config-dir",), ("--config-dir", "nowhere"),
            ("--config-dir", "/dev/null"), ("--config-name", "foo"), ("--config-path", "/nope"), ("--resolve",),
            ("--package", "foo", "--cfg", "job"), ("--package", "algo", "--cfg", "job"), ("--cfg", "job", "--resolve"),
            ("--cfg=job",), ("--cfg", "job", "output_dir=x"), ("--cfg", "job", "name=${nope}"), ("--run",),
            ("--run", "--multirun"), ("--shell-completion",), ("-sc", "install=nope"), ("-sc", "install=bash"),
            ("--hydra-help",), ("--experimental-rerun", "x"), ("--experimental-rerun",), ("--version",), ("--help",),
            ("-h",), ("--", "seed=1"), ("--seed", "1"), ("--seed=1",), ("-seed=1",), ("--force",), ("-",), ("",),
            (" ",), ("=",), ("=1",), ("seed",), ("seed=",), ("seed =1",), ("seed= 1",), ("seed==1",), ("~seed",),
            ("~algo",), ("~algo.gamma",), ("~nope",), ("++seed=1",), ("++nope=1",), ("+seed=1",), ("+env.kwargs.x=1",),
            ("hydra.run.dir=/proc/nope",), ("hydra.run.dir=x",), ("hydra.job.chdir=true",), ("hydra.mode=MULTIRUN",),
            ("hydra.mode=nope",), ("hydra.verbose=true",), ("hydra.output_subdir=x",), ("hydra.nope=1",),
            ("hydra/job_logging=default",), ("hydra/job_logging=nope",), ("hydra.searchpath=[file:///nope]",),
            ("hydra.searchpath=[pkg://os]",), ("hydra.launcher._target_=os.system",), ("hydra.job.name=a/b",),
            ("+hydra.callbacks.a._target_=os.system",), ("+hydra.job_logging.handlers.x.class=os.system",),
            ("hydra.sweeper._target_=foo.bar",), ("hydra.job.env_set.LD_PRELOAD=x.so",), ("@algo=ppo",),
            ("algo@foo=ppo",), ("+algo@algo2=ppo",), ("override",), ("algo.name=a2c",), ("env.name=restaurant",),
            ("algo=ppo", "algo=dqn"), ("seed=1", "seed=2"), ("a" * 100_000,), ("\udcff=1",), ("seed=\udcff",),
        )
    )  # fmt: skip


def _multiruns() -> Iterator[Case]:
    launchers = ((), ("hydra/launcher=joblib",))
    for overrides in (
        ("seed=0,1",), ("seed=0-1",), ("seed=1-0",), ("seed=0-9999999999",), ("seed=range(0,0)",), ("seed=range(0,2)",),
        ("seed=glob(*)",), ("seed=0,,1",), ("seed=choice(0,1)",), ("seed=interval(0,1)",), ("seed=shuffle(0,1)",),
        ("seed=tag(a,0,1)",), ("seed=sort(1,0)",), ("seed=-1,0",), ("seed=a,b",), ("seed=0,0",), ("algo=ppo,lcop",),
        ("algo=ppo,sac",), ("algo.gamma=0.9,2",), ("algo.gamma=range(0.1,0.9,0.0001)", "seed=0-99"),
        ("env=gym,restaurnt",), ("name=a,b",), ("output_dir=a,/proc/x",), ("hydra.sweep.dir=/proc/nope",),
        ("hydra.sweep.dir=x", "seed=0"), ("hydra.sweep.subdir=x",), ("hydra/sweeper=nope",), ("hydra.sweeper.max_batch_size=0",),
        ("hydra.sweeper.max_batch_size=-1",), ("hydra.sweeper.params.seed=0,1",), ("seed=0,1", "total_timesteps=64,nope"),
        ("algo.net_arch=[8],[4]",), ("algo.net_arch=[8],[0]",), ("~seed=0,1",), ("+foo=0,1",), ("",),
    ):  # fmt: skip
        yield Case(f"multirun {' '.join(overrides)}", ("-m", *PPO, *overrides))
    for overrides in (
        ("hydra.launcher.n_jobs=0",), ("hydra.launcher.n_jobs=x",), ("hydra.launcher.n_jobs=1",), ("hydra.launcher.n_job=1",),
        ("hydra.launcher.backend=nope",), ("hydra.launcher.batch_size=0",), ("hydra.launcher.temp_folder=/proc/x",),
        ("hydra.launcher._target_=os.system",),
    ):  # fmt: skip
        yield Case(f"joblib {' '.join(overrides)}", ("-m", *PPO, "seed=0", *launchers[1], *overrides))
    for name in ("slurm", "submitit", "nope", "../basic"):
        yield Case(f"launcher {name}", ("-m", *PPO, f"hydra/launcher={name}"), (2,))


def _commands() -> Iterator[Case]:
    for argv in (
        ("nope",), ("trian",), ("train",), ("list",), ("list", "nope"), ("list", "algos", "x"), ("list", "runs", "/nope"),
        ("list", "runs", "output_dir=/dev/null"), ("list", "runs", "output_dir=/proc/self"), ("list", "demos", "x=1"),
        ("list", "--x"), ("list", ""), ("list", "algos", "env=restaurant"), ("list", "algos", "env=nope"),
        ("evaluate",), ("evaluate", "nowhere"), ("evaluate", "/"), ("evaluate", "."), ("evaluate", "/dev/null"),
        ("evaluate", "a", "b"), ("evaluate", "--episodes"), ("evaluate", "evaluation.episodes=3"), ("evaluate", ""),
        ("evaluate", "a\0b"), ("evaluate", "x" * 5000), ("evaluate", "/proc/self"), ("evaluate", "--", "-x"),
        ("sweep",), ("sweep", "nope"), ("sweep", "tabel1"), ("sweep", "table1", "--dryrun"), ("sweep", "table1", "--jobs"),
        ("sweep", "table1", "--jobs", "two"), ("sweep", "table1", "--jobs", "0"), ("sweep", "table1", "--jobs", "-1"),
        ("sweep", "table1", "--dry-run"), ("sweep", "table1", "table2", "--dry-run"), ("sweep", "../x"), ("sweep", "/dev/null"),
        ("sweep", "/dev/zero"), ("sweep", "."), ("sweep", "table1", "--only", "nope", "--dry-run"), ("sweep", ""),
        ("sweep", "table1", "output_dir=/proc/x"), ("sweep", "table1", "seed=0", "--dry-run"), ("sweep", "a\0b"),
        ("report",), ("report", "nope"), ("report", "table1", "--output", "/proc/x"), ("report", "table1", "--strct"),
        ("report", "run"), ("report", "run", "nowhere"), ("report", "run", "/"), ("report", "sweep"), ("report", ""),
        ("report", "sweep", "nowhere"), ("report", "table1", "output_dir=nowhere"), ("report", "run", "a\0b"),
        ("report", "restaurant_fidelity", "tables=x"), ("report", "restaurant_fidelity", "tables=0"),
        ("report", "restaurant_fidelity", "dialogues=-1"), ("report", "restaurant_fidelity", "nope=1"),
        ("report", "table1", "--output"), ("report", "--help"), ("sweep", "--help"), ("demos", "--help"),
        ("demos",), ("demos", "env=unlock_pickup"), ("demos", "expert=bot"), ("demos", "env=nope", "expert=bot"),
        ("demos", "env=unlock_pickup", "expert=nope"), ("demos", "env=unlock_pickup", "expert=bot", "episodes=0"),
        ("demos", "env=unlock_pickup", "expert=bot", "episodes=x"), ("demos", "env=unlock_pickup", "expert=bot", "episodes=-1"),
        ("demos", "env=unlock_pickup", "expert=bot", "episodes=1", "output=x.txt"), ("demos", "env=datacenter", "expert=bot"),
        ("demos", "env=unlock_pickup", "expert=bot", "episodes=1", "output=/proc/x.npz"),
        ("demos", "env=unlock_pickup", "expert=bot", "episodes=1", "output=/dev/full/x.npz"),
        ("demos", "env=unlock_pickup", "expert=bot", "episodes=1", "seed=-1"), ("demos", "env=unlock_pickup", "expert=/dev/zero"),
        ("demos", "env=unlock_pickup", "expert=bot", "episodes=1", "seed=1e5"), ("demos", "env=unlock_pickup", "expert=bot", "force=maybe"),
        ("demos", "env=unlock_pickup", "expert=bot", "episodes=1", "output=a\0b.npz"), ("demos", "expert=."),
        ("demos", "env=gym", "env.id=CartPole-v1", "expert=bot"), ("demos", "env=unlock_pickup", "expert=bot", "nope=1"),
        ("--version",), ("help",), ("-h",), (), ("help", "nope"), ("--cfg", "job"), ("-m",), ("train", "train"),
        ("TRAIN", *PPO), ("evaluate", "RUN", "x"), ("-sc", "query=bash"),
    ):  # fmt: skip
        yield Case(f"command {' '.join(argv)[:60]!r}", argv)


def _tasks_and_sizes() -> Iterator[Case]:
    for argv in (
        (*PPO, "algo.policy=CnnPolicy"), (*PPO, "algo.policy=MultiInputPolicy"), (*PPO, "algo.policy=MlpLstmPolicy"),
        (*PPO, "+algo.foo=1"), (*PPO, "algo.net_arch=[true]"), (*PPO, "algo.net_arch={a:[1]}"), (*PPO, "algo.net_arch=[]"),
        (*PPO, "algo.net_arch={pi:[4]}"), (*PPO, "algo.net_arch=[1.5]"), (*PPO, "algo.net_arch=[300000,300000]"),
        (*SAC, "algo.ent_coef=nope"), (*SAC, "algo.ent_coef=null"), (*SAC, "algo.ent_coef=-1"), (*SAC, "algo.ent_coef=auto_0"),
        (*SAC, "algo.target_entropy=nope"), (*SAC, "algo.target_entropy=null"), (*SAC, "algo.target_entropy=[1]"),
        (*DQN, "algo.buffer_size=1", "algo.n_steps=5"), (*DQN, "algo.alpha=2"), (*DQN, "algo.buffer_size=10000000000000"),
        (*DQN, "algo.batch_size=10000000000"), (*PPO, "algo.n_steps=100000000000"), (*PPO, "algo.learning_rate=1e308"),
        (*PPO, "hardware.n_envs=9999999999"), (*PPO, "hardware.torch_threads=99999999999"), (*PPO, "evaluation.seed=1e26"),
        (*PPO, "evaluation.n_envs=9999999999"), (*PPO, "checkpoint.keep_last=99999999999999999999"), (*PPO, "seed=4294967295"),
        (*PPO, "seed=4294967296"), (*PPO, "tags=['']"), (*PPO, f"tags=[{'a' * 65}]"), (*PPO, "logger.project=a/b"),
        (*PPO, "logger.project="), (*PPO, f"name={'a' * 300}"), (*PPO, "hardware.device=cuda:7"), (*PPO, "hardware=gpu"),
        (*PPO, "env.id=Taxi-v3"), (*PPO, "env.id=nope:X-v0"), (*PPO, "env.id=os:X-v0"), (*PPO, "env.id=CartPole"),
        (*PPO, "env.id=:CartPole-v1"), (*PPO, "env.id=a:b:c"), (*PPO, "+env.kwargs.render_mode=human"),
        (*PPO, "+env.kwargs.render_mode=nope"), (*PPO, "env.kwargs=[1]"), (*PPO, "env.kwargs={max_episode_steps:-1}"),
        (*PPO, "env.id=Blackjack-v1"), (*PPO, "env.id=CliffWalking-v1"), (*PPO, "env.id=FrozenLake-v1"),
        (*LCPO, "env.database=/dev/zero"), (*LCPO, "env.ontology=/dev/zero"), (*LCPO, "env.database=/nope"),
        (*LCPO, "env.patience=[5,1]"), (*LCPO, "env.patience=[1]"), (*LCPO, "env.patience=[a,b]"), (*LCPO, "env.max_turns=0"),
        (*LCPO, "env.disabled_actions=[dance]"), (*LCPO, "env.n_best=5", "env.error_model=random"), (*LCPO, "env.user=nobody"),
        ("algo=random", "env=repeat_previous", "total_timesteps=9", "env.decks=99999999999"),
        ("algo=random", "env=datacenter", "env.backend=surrogate", "env.weather_noise=1e300"),
        ("algo=random", "env=datacenter", "env.backend=surrogate", "env.weather=/dev/zero"),
        ("algo=random", "env=datacenter", "env.backend=surrogate", "env.weather=nope.epw"),
        ("algo=random", "env=datacenter", "env.backend=surrogate", "env.weather=[]"),
        ("algo=random", "env=datacenter", "env.backend=surrogate", "env.days=366"),
        ("algo=bc", "env=unlock_pickup", "total_timesteps=9"), ("algo=dqfd", "env=unlock_pickup", "total_timesteps=9"),
        ("algo=bc", "env=unlock_pickup", "total_timesteps=9", "algo.demonstrations=/dev/zero"),
        ("algo=bc", "env=unlock_pickup", "total_timesteps=9", "algo.demonstrations=nope.npz"),
        ("algo=bc", "env=unlock_pickup", "total_timesteps=9", "algo.demonstrations=."),
        ("algo=acer", "experiment=acer_pendulum"), ("algo=ppo", "experiment=lcpo_decay"), ("algo=sac", "env=restaurant"),
        ("algo=ppo", "env=minatar", "env.game=pong"), ("algo=ppo", "env=atari", "env.id=pogn"), ("algo=ppo", "env=minigrid", "env.id=x"),
        ("algo=ppo", "env=blind_cliffwalk", "total_timesteps=9", "env.n_states=99999999999"), ("algo=tam", "env=gym", "env.id=Pendulum-v1"),
        ("algo=ppo", "hardware=ray"), ("algo=r2d2", "hardware=ray", "hardware.ray.actors=0"), ("algo=ppo", "env=CartPole-v1", "tuned=none"),
    ):  # fmt: skip
        yield Case(f"task {' '.join(argv[-2:])[:70]}", argv)


def _paths() -> Iterator[Case]:
    for path in (
        "a" * 300, "/".join(["a" * 100] * 50), "'a\0b'", "/proc/nope", "/dev/null/x", "/dev/full", "/sys/x", "/nope/" * 3, "",
        "~", "'~root/x'", "'a b'", "'a\nb'", "-x", "'ü☃'", ".", "..", "./././x", "'*'", "'$HOME'", "file:///x", "//x", "'x '", "x/",
        "'[x]'", "'{x}'", "'%s'", "'..\\x'", "CON", "'\x1b[2Jx'",
    ):  # fmt: skip
        for key in ("output_dir", "hydra.sweep.dir"):
            if path in (".", "..", "./././x", "/nope/" * 3, "~", "//x", "'~root/x'") and key == "output_dir":
                continue  # writes to a given path, outside of the case's folder
            prefix = ("-m",) if key.startswith("hydra") else ()
            yield Case(f"path {key}={path[:40]!r}", (*prefix, *PPO, f"{key}={path}"))

    def link(folder: Path) -> None:
        (folder / "outputs").symlink_to("/proc/self/fd")

    def file(folder: Path) -> None:
        (folder / "outputs").write_text("")

    def locked(folder: Path) -> None:
        (folder / "outputs").symlink_to("outputs")

    def module(folder: Path) -> None:
        for name in ("omegaconf", "torch", "rlexp", "wandb", "sitecustomize", "joblib"):
            (folder / f"{name}.py").write_text(f"open('{_CANARY}', 'w').close()\nraise SystemExit(0)\n")

    for name, prepare, allowed in (
        ("outputs is a link to /proc", link, (2,)),
        ("outputs is a file", file, (2,)),
        ("outputs is a link to itself", locked, (2,)),
        ("modules in the folder", module, (0,)),
    ):
        yield Case(f"folder {name}", PPO, allowed, prepare)
    yield Case("folder modules and joblib", ("-m", *PPO, "seed=0,1", "hydra/launcher=joblib"), (0,), module)
    yield Case("folder modules and subproc", (*PPO, "hardware.vec_env=subproc"), (0,), module)


def cases(seed: int) -> list[Case]:
    """Return every case; the seed decides which keys meet which values and how choices are misspelt."""
    generator = random.Random(seed)
    found = [
        *_values(generator), *_choices(generator), *_flags(), *_multiruns(), *_commands(), *_tasks_and_sizes(), *_paths(),
    ]  # fmt: skip
    named: dict[str, Case] = {}
    for case in {case.argv: case for case in found if case.prepare is None}.values():
        named[f"{case.name} #{len(named)}" if case.name in named else case.name] = case
    named |= {case.name: case for case in found if case.prepare is not None}
    return [replace(case, name=name) for name, case in named.items()]


def attack(case: Case, folder: Path) -> judge.Verdict:
    """Run one case in an empty folder."""
    if case.prepare is not None:
        case.prepare(folder)
    seconds = (
        3 * SECONDS if "hydra/launcher=joblib" in case.argv else SECONDS
    )  # its workers load everything anew
    result = sandbox.run(list(case.argv), folder, seconds)
    broken = judge.judge(result, case.allowed)
    return judge.Verdict("commands", case.name, judge.shell(list(case.argv)), result.seconds, broken)
