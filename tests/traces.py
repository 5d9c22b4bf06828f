"""Behavioural traces: has a change altered anything that is learned or measured?

``python tests/traces.py --against COMMIT`` runs every registered algorithm for a short seeded run on this checkout and
on another commit, on the same machine, and compares weights, evaluations, metrics and demonstrations bit by bit. It
compares checkouts rather than constants because floating-point results differ between types of CPU. Each checkout runs
its own list of cases (this file as it stands there, and this one for what is missing), so that options may be renamed;
cases of the same name are compared, and metrics by the names that both have.

Not part of ``make test``: run it before and after moving code.
"""

# ruff: noqa: E402
from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
sys.path[0] = str(HERE)  # not tests/, whose folder "logging" would hide the standard library's

import argparse
import importlib.util
import io
import json
import os
import subprocess
import tempfile
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

_RESTAURANT = (
    "env=restaurant",
    "total_episodes=60",
    "evaluation.every_episodes=20",
    "evaluation.episodes=20",
)
_MASKED = (*_RESTAURANT, "env.masks=true")
_CARDS = ("env=repeat_previous", "total_timesteps=1500", "evaluation.every_timesteps=500")
_PENDULUM = ("total_timesteps=600", "evaluation.every_timesteps=200", "evaluation.episodes=2")
_GRID = (
    "env=unlock_pickup",
    "total_timesteps=600",
    "evaluation.every_timesteps=200",
    "evaluation.episodes=4",
)
_DEMOS = "algo.demonstrations=demonstrations.npz"
_OFF_POLICY = ("algo.learning_starts=100", "algo.batch_size=16")
_SEQUENCES = (*_OFF_POLICY, "algo.buffer_size=2000")
_SHARED = ("algo.shared_lstm=true", "algo.enable_critic_lstm=false")

CASES: dict[str, tuple[str, ...]] = {
    "ppo-dialogues": ("algo=ppo", *_RESTAURANT),
    "ppo-masks": ("algo=ppo", *_MASKED),
    "ppo-pendulum": ("algo=ppo", "env=pendulum_p", *_PENDULUM),
    "ppo-gym": ("algo=ppo", "env=gym", "env.id=gymnasium:CartPole-v1", "total_timesteps=1000"),
    "a2c-breakout": ("algo=a2c", "env=minatar", "env.game=breakout", "total_timesteps=1000"),
    "a2c-dialogues": ("algo=a2c", *_RESTAURANT),
    "sac-pendulum": ("algo=sac", "env=pendulum_v", *_PENDULUM, "algo.learning_starts=100"),
    "recurrent_ppo-cards": ("algo=recurrent_ppo", *_CARDS),
    "recurrent_ppo-layer-norm": ("algo=recurrent_ppo", "env=pendulum_v", *_PENDULUM, *_SHARED, "algo.layer_norm=true"),
    "lcpo-dialogues": ("algo=lcpo", *_RESTAURANT),
    "lcpo-masks": ("algo=lcpo", *_MASKED),
    "tam-dialogues": ("algo=tam", *_RESTAURANT),
    "acer-dialogues": ("algo=acer", *_RESTAURANT),
    "acer-masks": ("algo=acer", *_MASKED),
    "acer-memory": ("algo=acer", *_CARDS, "algo.policy=MlpLstmPolicy"),
    "acer-breakout": ("algo=acer", "env=minatar", "env.game=breakout", "total_timesteps=1500"),
    "acer-pendulum": ("algo=acer", "env=pendulum_p", *_PENDULUM),
    "dqn-dialogues": ("algo=dqn", *_RESTAURANT, *_OFF_POLICY),
    "dqn-uniform": ("algo=dqn", *_CARDS, "algo.replay=uniform", "algo.n_steps=3", *_OFF_POLICY),
    "dqn-rank": ("algo=dqn", *_CARDS, "algo.replay=rank", "algo.dueling=true", *_OFF_POLICY),
    "dqn-pong": ("algo=dqn", "env=pong", "total_timesteps=300", "evaluation.episodes=0", *_SEQUENCES),
    "dqfd-grid": ("algo=dqfd", *_GRID, _DEMOS, "algo.pretrain_updates=40", *_OFF_POLICY),
    "r2d2-cards": ("algo=r2d2", *_CARDS, *_SEQUENCES),
    "r2d2-sampled": ("algo=r2d2", *_RESTAURANT, *_SEQUENCES, "algo.replay=rank"),
    "r2d3-grid": ("algo=r2d3", *_GRID, _DEMOS, "algo.pretrain_updates=20", *_SEQUENCES),
    "bc-grid": ("algo=bc", *_GRID, "total_timesteps=3000", _DEMOS, "algo.batch_size=8"),
    "sac_lstm-pendulum": ("algo=sac_lstm", "env=pendulum_v", *_PENDULUM, *_SEQUENCES),
    "slac-pendulum": ("algo=slac", "env=pendulum_p", *_PENDULUM, *_SEQUENCES, "algo.pretrain_updates=50"),
    "handcrafted-dialogues": ("algo=handcrafted", "env=restaurant", "evaluation.episodes=50"),
    "handcrafted-grid": ("algo=handcrafted", "env=unlock_pickup", "total_timesteps=1", "evaluation.episodes=5"),
    "random-cards": ("algo=random", "env=repeat_previous", "total_timesteps=1", "evaluation.episodes=5"),
    **{
        f"{name}-datacenter": (f"algo={name}", "env=datacenter", "env.backend=surrogate", "evaluation.episodes=1")
        for name in ("builtin", "constant", "pi_fan", "schedule_aware", "random")
    },
}  # fmt: skip
DEMONSTRATIONS = ("demos", "env=unlock_pickup", "expert=bot", "episodes=6", "output=demonstrations.npz")
_CLOCKS = ("wall_s", "time/fps", "time/time_elapsed", "at", "overrides")


def run_case(checkout: Path, cases: dict[str, tuple[str, ...]], name: str, folder: Path) -> str:
    """Run one case of one checkout in its own folder; return "" or what went wrong."""
    folder.mkdir(parents=True)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{write_metadata(checkout, folder / 'metadata')}:{checkout}",
        "OMP_NUM_THREADS": "1",
        "WANDB_MODE": "disabled",
        "RLEXP_TRACEBACK": "1",
    }
    commands = [(*cases[name], "seed=7", "logger=none")]
    if _DEMOS in cases[name]:
        commands.insert(0, DEMONSTRATIONS)
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "rlexp", *command], cwd=folder, env=environment, capture_output=True
        )
        if done.returncode:
            return done.stderr.decode()[-2000:] or f"exit code {done.returncode}"
    return ""


def write_metadata(checkout: Path, folder: Path) -> Path:
    """Write the package metadata of a checkout, found before those of the environment: its own entry points count.

    :return: what to put before the checkout on the import path
    """
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    info = folder / "rlexp-0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rlexp\nVersion: 0\n")
    lines = []
    for group, points in project.get("entry-points", {}).items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def contents(folder: Path) -> dict[str, Any]:
    """Return what a case left behind: named arrays and rows, their clocks left out."""
    found: dict[str, Any] = {}
    (run,) = folder.glob("outputs/runs/*/*/*/seed=*")
    for name in ("evaluations.jsonl", "metrics.jsonl"):
        if (run / name).is_file():
            rows = [json.loads(line) for line in (run / name).read_text().splitlines()]
            found[name] = [{key: row[key] for key in row if key not in _CLOCKS} for row in rows]
    archives = [path for path in (run / "model.zip", folder / "demonstrations.npz") if path.is_file()]
    for path in archives:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                if member.endswith(".pth"):
                    found[member] = _flat(archive.read(member))
                elif member.endswith(".npy"):
                    found[member] = np.lib.format.read_array(io.BytesIO(archive.read(member)))
    return found


def _flat(data: bytes) -> list[tuple[str, Any]]:
    import torch as th

    def walk(value: Any, path: str) -> list[tuple[str, Any]]:
        if isinstance(value, dict):
            return [leaf for key, item in value.items() for leaf in walk(item, f"{path}.{key}")]
        if isinstance(value, (list, tuple)):
            return [leaf for index, item in enumerate(value) for leaf in walk(item, f"{path}.{index}")]
        return [(path, value.detach().numpy() if isinstance(value, th.Tensor) else value)]

    return walk(th.load(io.BytesIO(data), weights_only=True), "")


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return what differs between two cases' contents, in words."""
    found = [f"only one of them has {name}" for name in sorted(one.keys() ^ other.keys())]
    for name in sorted(one.keys() & other.keys()):
        a, b = one[name], other[name]
        if name.endswith(".jsonl"):
            if len(a) != len(b):
                found.append(f"{name}: {len(a)} and {len(b)} rows")
            for number, (x, y) in enumerate(zip(a, b, strict=False), 1):
                unlike = [key for key in x.keys() & y.keys() if x[key] != y[key]]
                if unlike:
                    found.append(f"{name} row {number}: {unlike[0]} is {x[unlike[0]]} and {y[unlike[0]]}")
                    break
        elif isinstance(a, list):  # weights: in their order, whatever the modules are called
            if len(a) != len(b):
                found.append(f"{name}: {len(a)} and {len(b)} leaves")
            unlike = [x[0] for x, y in zip(a, b, strict=False) if not np.array_equal(x[1], y[1])]
            if unlike:
                found.append(f"{name}: {len(unlike)} of {len(a)} leaves differ, first {unlike[0]}")
        elif not np.array_equal(a, b):
            found.append(f"{name} differs")
    return found


def cases_of(checkout: Path) -> dict[str, tuple[str, ...]]:
    """Return the cases as that checkout spells them."""
    path = checkout / "tests" / "traces.py"
    if not path.is_file():
        return CASES
    spec = importlib.util.spec_from_file_location("traces_there", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, tuple[str, ...]] = module.CASES
    return found


def uncovered(cases: dict[str, tuple[str, ...]]) -> list[str]:
    """Return the registered algorithms that no case runs."""
    from rlexp import registry

    return sorted(set(registry.algos()) - {case[0].removeprefix("algo=") for case in cases.values()})


def main() -> int:
    """Compare; return 0 when nothing differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--against", metavar="COMMIT", required=True, help="the commit to compare with")
    parser.add_argument("--only", metavar="TEXT", default="", help="cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=2, help="cases side by side")
    options = parser.parse_args()
    if missing := uncovered(CASES):
        print(f"no case for {', '.join(missing)}")
        return 1
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        there = scratch / "checkout"
        git = ["git", "-C", str(HERE)]
        subprocess.run([*git, "worktree", "add", "--quiet", "--detach", there, options.against], check=True)
        try:
            failed = _compare(there, scratch, options.only, options.jobs)
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", there], check=True)
    print(f"{len(failed)} cases differ: {', '.join(failed)}" if failed else "identical")
    return 1 if failed else 0


def _compare(there: Path, scratch: Path, only: str, jobs: int) -> list[str]:
    theirs = cases_of(there)

    def one(name: str) -> tuple[str, list[str]]:
        folders = {"here": scratch / name / "here", "there": scratch / name / "there"}
        for side, checkout, cases in (("here", HERE, CASES), ("there", there, theirs)):
            if error := run_case(checkout, {**CASES, **cases}, name, folders[side]):
                return name, [f"failed {side}: {error}"]
        return name, differences(contents(folders["here"]), contents(folders["there"]))

    failed: list[str] = []
    chosen = [name for name in CASES if only in name]
    with ThreadPoolExecutor(jobs) as pool:
        for name, found in pool.map(one, chosen):
            print(f"{name:26} {'identical' if not found else '; '.join(found)}", flush=True)
            if found:
                failed.append(name)
    print(f"{len(chosen) - len(failed)} of {len(chosen)} cases identical")
    return failed


if __name__ == "__main__":
    sys.exit(main())
