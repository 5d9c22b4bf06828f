"""Train, resume or skip one run in its folder, and print what happens to it."""

from __future__ import annotations

import os
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from rlexp.config import paths
from rlexp.errors import RunFailed, UsageError, describe, first_line
from rlexp.runs import extend
from rlexp.runs import folder as run_folder
from rlexp.runs.messages import effort, finished_line, quoted, short, summary
from rlexp.system import stopping, terminal


def train(cfg: DictConfig, folder: Path, origin: dict[str, Any]) -> bool:
    """Train or resume one run, unless it is finished.

    :param folder: of the run
    :param origin: the command behind it, for the record
    :return: False when it was finished before
    :raises UsageError: when it cannot be started; the folder is as it was before
    :raises RunFailed: when training failed
    :raises Stopped: after SIGINT or SIGTERM
    """
    console = terminal.console(width=None, soft_wrap=True)
    if not cfg.force and (line := finished_line(folder, cfg) if folder.exists() else None):
        console.print(line)
        return False
    import rlexp.runs.experiment  # takes seconds: a signal that comes meanwhile leaves no folder behind  # noqa: F401

    is_empty = not folder.exists() or not any(folder.iterdir())
    extended = _extend(cfg, folder, console) if is_empty and not cfg.force else {}
    folder.mkdir(parents=True, exist_ok=True)
    is_new = bool(extended) or not any(folder.iterdir())
    origin = {**origin, **extended}
    aside = None
    with run_folder.claimed(folder):
        if not (cfg.force and (folder / run_folder.CONFIG).exists()):
            _run(cfg, folder, origin, console, is_new)
            return True
        aside = run_folder.set_aside(folder)
    folder.mkdir(parents=True)
    with run_folder.claimed(folder):
        try:
            _run(cfg, folder, origin, console, is_new=True)
        except UsageError:
            if not folder.exists():
                aside.rename(folder)
            raise
    return True


def _extend(cfg: DictConfig, folder: Path, console: Any) -> dict[str, Any]:
    """Let a new run continue a finished one with a smaller budget, if there is one."""
    source = extend.find_shorter(cfg, folder)
    if source is None:
        return {}
    reason = extend.obstacle(cfg)
    if reason is not None:
        console.print(f"{short(source)} has finished with a smaller budget; not continued: {reason}")
        return {}
    folder.parent.mkdir(parents=True, exist_ok=True)
    entry = extend.prepare(source, folder)
    if entry is None:
        return {}
    console.print(
        f"continuing the finished run of {entry['timesteps']:,} steps, {short(source)}; force=true trains from scratch"
    )
    return {"extended_from": entry}


def _run(cfg: DictConfig, folder: Path, origin: dict[str, Any], console: Any, is_new: bool) -> None:
    from rlexp.runs.experiment import Experiment

    chosen = origin.get("overrides", ("env=",))
    default = "" if any(one.startswith("env=") for one in chosen) else " (env not given; rlexp list envs)"
    console.print(f"{cfg.algo.name} on {paths.env_label(cfg)}{default}, seed {cfg.seed} -> {quoted(folder)}")
    experiment = Experiment(cfg, folder, origin, console)
    try:
        final = experiment.run()
    except stopping.Stopped:
        console.print(f"interrupted; resume with the same command, or: rlexp resume {quoted(folder)}")
        raise
    except Exception as error:  # algorithms and environments of any origin
        if is_new and not experiment.has_begun:  # nothing was trained: leave nothing behind
            shutil.rmtree(folder)
        if isinstance(error, UsageError):
            raise
        if is_new and not experiment.has_begun:
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise UsageError(f"{cfg.algo.name} on {paths.env_label(cfg)}: {reason}") from error
        if os.environ.get("RLEXP_TRACEBACK") == "1":
            traceback.print_exc()
        print(f"failed: {describe(error)}", file=sys.stderr)
        if experiment.has_traceback:
            print(f"{short(folder / run_folder.RECORD)} holds the traceback", file=sys.stderr)
        raise RunFailed(f"{short(folder)}: {error}") from error
    run_folder.drop_previous(folder)
    console.print(f"finished: {summary(final, cfg.env.name)}")
    if (done := effort(run_folder.read_record(folder), cfg.env.name)) is not None:
        console.print(f"trained: {done}")
