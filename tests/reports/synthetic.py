"""Run folders as the runner leaves them, made of chosen numbers; and a compose that needs no Hydra."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig, OmegaConf

from rlexp.config.paths import resolved
from rlexp.reports import sweep_file
from rlexp.reports.definition import Expected, Sweep
from rlexp.reports.load import LoadedRuns, frames
from rlexp.sweep.plan import expected_runs

Curve = Callable[[int, int], float]

BASE: dict[str, Any] = {
    "seed": 0,
    "total_timesteps": None,
    "total_episodes": 2000,
    "output_dir": "outputs",
    "name": None,
    "tags": [],
    "force": False,
    "algo": {"name": "ppo", "n_steps": 100, "learning_rate": 1e-3},
    "env": {"name": "restaurant", "error_rate": 0.15, "confusion_seed": "${seed}"},
    "hardware": {"device": "cpu", "torch_threads": 1, "n_envs": 1, "vec_env": "dummy"},
    "logger": {"wandb": "disabled"},
    "evaluation": {
        "every_episodes": 100,
        "every_timesteps": None,
        "episodes": 500,
        "deterministic": False,
        "seed": None,
    },
    "checkpoint": {"keep": 2},
}


def compose(arguments: Sequence[str]) -> DictConfig:
    """Compose like the real command, from group choices and dotted keys, without checking anything."""
    cfg = OmegaConf.create(BASE)
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key == "env/benchmark":
            key = "env.benchmark"
        elif key == "logger":
            continue
        elif key in ("algo", "env"):
            key = f"{key}.name"
        OmegaConf.update(cfg, key, OmegaConf.from_dotlist([f"x={value}"]).x, force_add=True)
    return cfg


def learning_curve(start: float, end: float, speed: float = 300.0, spread: float = 0.02) -> Curve:
    """Return a success rate that rises from start to end, a little different for every seed."""

    def at(episodes: int, seed: int) -> float:
        noise = np.random.default_rng([seed, episodes]).normal(0.0, spread)
        shift = np.random.default_rng(seed).normal(0.0, spread)
        return min(1.0, max(0.0, end - (end - start) * math.exp(-episodes / speed) + noise + shift))

    return at


def row(episodes: int, success: float, n: int = 500) -> dict[str, Any]:
    """Return one evaluation row of the restaurant task."""
    turns = 13.0 - 6.0 * success
    return {
        "episodes": episodes,
        "timesteps": episodes * 9,
        "n": n,
        "return_mean": 20.0 * success - turns,
        "return_std": 8.0,
        "length_mean": turns,
        "length_std": 3.0,
        "success_rate": success,
        "turns_mean": turns + 0.95,
        "turns_std": 3.0,
        "system_turns_mean": turns,
        "system_turns_std": 3.0,
        "loops_mean": 5.0 - 4.0 * success,
        "loops_std": 1.0,
        "wall_s": 0.5,
    }


def write_run(
    run: Expected,
    curve: Curve,
    cfg: DictConfig | None = None,
    status: str = "finished",
    error: str | None = None,
    n: int = 500,
    until: int | None = None,
    train_s: float = 40.0,
) -> None:
    """Write one run folder.

    :param cfg: config to store; None: the one that the run's arguments compose
    :param until: episodes after which the evaluations end; None: the budget
    """
    cfg = compose(run.overrides) if cfg is None else cfg
    run.folder.mkdir(parents=True, exist_ok=True)
    (run.folder / "config.yaml").write_text(OmegaConf.to_yaml(OmegaConf.create(resolved(cfg))))
    budget = until or int(cfg.total_episodes)
    rows = [row(episodes, curve(episodes, run.seed), n) for episodes in range(100, budget + 1, 100)]
    (run.folder / "evaluations.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    record = {
        "status": status,
        "error": error,
        "schema_version": 1,
        "seed": run.seed,
        "algo": str(cfg.algo.name),
        "env": str(cfg.env.name),
        "episodes": budget,
        "timesteps": budget * 9,
        "wall_s": train_s + 10.0,
        "train_s": train_s + run.seed % 7,
        "evaluation": rows[-1] if rows else None,
    }
    (run.folder / "record.json").write_text(json.dumps(record))


def loaded(*runs: tuple[str, int, Sequence[dict[str, Any]], dict[str, Any]]) -> LoadedRuns:
    """Return loaded runs made of label, seed, evaluation rows and record each."""
    keys = [{"label": label, "seed": seed} for label, seed, _, _ in runs]
    records = [{**record, **key} for key, (*_, record) in zip(keys, runs, strict=True)]
    rows = [{**row, **key} for key, (_, _, evaluated, _) in zip(keys, runs, strict=True) for row in evaluated]
    return LoadedRuns(*frames(records, rows))


def folder_bytes(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SWEEP = """
title: Two algorithms
seeds: 3-6
common: [env=restaurant]
runs:
  - {label: PPO, overrides: [algo=ppo], paper: {success: [60.0, 5.0], reached: 9000, late: 95.16}}
  - {label: LCPO, overrides: [algo=lcpo], paper: {success: 70, reached: 260}}
table:
  columns:
    - {name: success, label: Success @200, metric: success_rate, at: 200, unit: "%"}
    - {name: late, label: Success @2000, metric: success_rate, unit: "%"}
    - {name: turns, label: Turns, metric: system_turns_mean, better: lower}
    - {name: reached, label: Dialogues to 80 %, metric: success_rate, threshold: 0.8, digits: 0, better: lower}
    - {name: time, label: Time, metric: train_s, source: record, unit: s, better: lower, volatile: true}
    - {name: ratio, label: Ratio, metric: train_s, source: record, better: lower, relative_to: PPO,
       volatile: true}
  contrasts:
    - {of: LCPO, minus: PPO, columns: [success, reached, turns]}
  notes: ["Turns: acts of the system."]
"""

FIGURE = """
title: Curves
runs_of: small
figure:
  panels:
    - title: Success rate
      metric: success_rate
      unit: "%"
      references: [{row: LCPO, at: 200, value: 70, std: 2}]
    - {title: Turns, metric: system_turns_mean, rows: [PPO]}
  sensitivity:
    - {label: both, rows: [PPO, LCPO], metric: success_rate}
    - {label: none, rows: [PPO, PPO], metric: success_rate}
"""

PPO = {3: 0.50, 4: 0.52, 5: 0.54, 6: 0.60}


def ppo(episodes: int, seed: int) -> float:
    """A success rate that stands still, different for every seed."""
    return PPO[seed]


def lcpo(episodes: int, seed: int) -> float:
    """Rises by ten points every hundred episodes, from .6, up to 1."""
    return min(1.0, 0.5 + episodes / 1000.0 + (seed - 4.5) / 100.0)


class Place:
    """A folder of sweep files and an output folder."""

    def __init__(self, top: Path) -> None:
        self.sweeps = top / "sweeps"
        self.outputs = top / "outputs"
        self.sweeps.mkdir()
        (self.sweeps / "small.yaml").write_text(SWEEP)
        (self.sweeps / "curves.yaml").write_text(FIGURE)

    def load(self, name: str = "small") -> Sweep:
        return sweep_file.load(name, self.sweeps)

    def expected(self, name: str = "small") -> list[Expected]:
        return expected_runs(self.load(name), [f"output_dir={self.outputs}"], compose)

    def fill(self) -> list[Expected]:
        runs = self.expected()
        for run in runs:
            write_run(run, ppo if run.label == "PPO" else lcpo)
        return runs

    def report(self, *arguments: str) -> int:
        from rlexp.cli import report

        settings = [] if arguments[:1] in (("run",), ("sweep",)) else [f"output_dir={self.outputs}"]
        return report.main([*arguments, *settings], compose)
