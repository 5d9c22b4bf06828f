"""How commands describe a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlexp import registry
from rlexp.config.intervals import KEYS, is_default
from rlexp.errors import UsageError
from rlexp.runs import folder as run_folder
from rlexp.runs.stored import read_config
from rlexp.system.terminal import inert

Changes = dict[str, tuple[Any, Any]]
"""Keys of ``evaluation``, each with its old and its new value."""


def summary(row: dict[str, Any], env: str) -> str:
    """Return the final numbers as one line: the environment's own figures first.

    :param env: name of the environment
    """
    if not row:
        return "no evaluation was asked for"
    spec = registry.env(env)
    figures = [text.format(row[key]) for key, text in spec.figures if row.get(key) is not None]
    n = int(row["n"])
    spread = "" if figures or n == 1 else f" ± {row['return_std']:.2f}"
    episodes = f"{n} {spec.episode}{'' if n == 1 else 's'}"
    return ", ".join([*figures, f"return {row['return_mean']:.2f}{spread} over {episodes}"])


def effort(record: dict[str, Any], env: str) -> str | None:
    """Return how much was trained and how fast, None for what does not train.

    :param env: name of the environment
    """
    seconds = record.get("train_s")
    if not seconds or not record.get("timesteps"):
        return None
    steps = int(record["timesteps"])
    episodes = f"{record.get('episodes', 0):,} {registry.env(env).episode}s"
    return f"{steps:,} steps, {episodes} in {seconds:,.1f} s, {steps / seconds:,.0f} steps/s"


def finished_line(folder: Path, cfg: DictConfig) -> str | None:
    """Return what is said of a run that is finished, None of any other.

    :param cfg: config of the command; evaluation settings that it changes are named
    """
    if not (folder / run_folder.RECORD).exists():
        return None
    entry = run_folder.read_record(folder)
    if entry["status"] != "finished":
        return None
    lines = [
        f"already finished: {summary(entry.get('evaluation') or {}, cfg.env.name)}",
        shlex.quote(inert(folder)),
    ]
    changes = {
        key: change
        for key, change in evaluation_changes(folder, cfg).items()
        if not is_default(cfg.evaluation, key)
    }
    if changes:
        lines.append(f"evaluated with {_old_settings(changes)}")
        measured = [f"evaluation.{key}={_plain(new)}" for key, (_, new) in changes.items() if key not in KEYS]
        if measured:
            lines.append(f"rlexp evaluate {lines[1]} {' '.join(measured)} evaluates it again")
    return "\n".join([*lines, "force=true trains it from scratch"])


def resumed_line(timesteps: int, changes: Changes) -> str:
    """Return what is said of a run that is resumed.

    :param timesteps: where
    :param changes: of its evaluation settings
    """
    line = f"resuming at step {timesteps:,}"
    return f"{line}; evaluated so far with {_old_settings(changes)}" if changes else line


def evaluation_changes(folder: Path, cfg: DictConfig) -> Changes:
    """Return the evaluation settings in which a config differs from that of a run folder; none for a damaged folder."""
    if not (folder / run_folder.CONFIG).is_file():
        return {}
    try:
        stored = read_config(folder / run_folder.CONFIG).get("evaluation")
    except UsageError:  # who needs the config itself says what is wrong with it
        return {}
    if not isinstance(stored, DictConfig):
        return {}
    return {
        str(key): (stored[key], cfg.evaluation[key])
        for key in cfg.evaluation
        if key in stored and stored[key] != cfg.evaluation[key]
    }


def _old_settings(changes: Changes) -> str:
    parts = [f"evaluation.{key}={_plain(old)}, not {_plain(new)}" for key, (old, new) in changes.items()]
    return "; ".join(parts)


def _plain(value: Any) -> str:
    return str(OmegaConf.to_yaml(OmegaConf.create([value]))).strip().removeprefix("- ")


def quoted(path: Path) -> str:
    """Return a path as :func:`short` does, quoted where a shell needs it."""
    return shlex.quote(short(path))


def short(path: Path) -> str:
    """Return a path as it is shown: relative to the current folder if it is below it."""
    here = Path.cwd()
    return inert(path.relative_to(here) if path.is_relative_to(here) else path)
