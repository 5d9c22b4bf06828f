"""``rlexp -m``: from one command line to the overrides of many runs, and to Hydra's launcher that runs them.

Hydra composes the config of a multirun itself, from the overrides that are not swept; what a swept group decides is
missing there, and a defaults list that follows it (``tuned: ${env}/${algo}``) cannot be resolved. So the runs are
enumerated here, the launcher is configured from the first of them, and each run is composed from all of its overrides.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlexp.config import hydra_app, paths
from rlexp.config.hydra_app import HydraApp, TaskFunction, parse
from rlexp.errors import RunFailed, UsageError, first_line
from rlexp.runs import folder as run_folder
from rlexp.runs.preflight import check_writable
from rlexp.runs.train import train
from rlexp.sweep import workers
from rlexp.system import stopping

MAX_RUNS = 10_000  # more is a slip of the pen: each is composed and validated before the first begins
RUNS = "runs.jsonl"  # in a multirun's own folder: which runs belong to it
_SEED_RANGE = re.compile(r"^seed=(\d+)-(\d+)$")


def shell_safe(override: str) -> str:
    """``seed=0-4`` means ``seed=range(0,5)`` without the parentheses that a shell would take.

    :raises UsageError: when the range runs backwards
    """
    match = _SEED_RANGE.match(override)
    if match is None:
        return override
    first, last = int(match[1]), int(match[2])
    if last < first:
        raise UsageError(f"{override}: the range runs backwards; write seed={last}-{first}")
    return f"seed=range({first},{last + 1})"


def expand(app: HydraApp, overrides: Sequence[str]) -> list[list[str]]:
    """Return the overrides of every run, the first key varying slowest.

    :raises UsageError: when a key has no value or there are more than ``MAX_RUNS`` runs
    """
    values: dict[str, list[str]] = {}
    for text in overrides:
        override = app.parse(text)
        key = override.get_key_element()
        if not override.is_sweep_override():
            values[key] = [text]
            continue
        if override.is_hydra_override():
            raise UsageError(
                f"{text}: several values given; Hydra's own settings hold for all runs, give one"
            )
        if not override.is_discrete_sweep():
            raise UsageError(f"{text}: an interval cannot be enumerated; list the values, or use range(...)")
        try:
            found = list(itertools.islice(_unshuffled(override).sweep_string_iterator(), MAX_RUNS + 1))
        except Exception as error:
            raise UsageError(f"{text}: cannot be enumerated ({first_line(error)})") from error
        if not found:
            raise UsageError(f"{text}: no value at all; a range holds its start and ends before its stop")
        values[key] = [f"{key}={value}" for value in found]
        if math.prod(map(len, values.values())) > MAX_RUNS:
            raise UsageError(f"{text}: more than {MAX_RUNS:,} runs in one command; split them into several")
    return [list(run) for run in itertools.product(*values.values())]


def _unshuffled(override: Any) -> Any:
    if getattr(override.value(), "shuffle", False):  # would enumerate whatever number of values
        override.value().shuffle = False
    return override


def launch(app: HydraApp, runs: Sequence[Sequence[str]], task: TaskFunction | None = None) -> Path:
    """Run all of them with the launcher that the command line chose.

    :param runs: the overrides of each
    :param task: trains one run, in whatever process the launcher starts; a test may substitute its own
    :return: the multirun's own folder, which lists them
    :raises UsageError: when the launcher cannot start
    """
    folder = Path(str(OmegaConf.select(app.compose(runs[0], multirun=True), "hydra.sweep.dir"))).absolute()
    check_writable(folder, "hydra.sweep.dir")
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    quoted = str(folder).replace("\\", "\\\\").replace("'", "\\'")
    # The same folder for all of them, whatever the time.
    cfg = app.compose([*runs[0], "hydra.mode=MULTIRUN", f"hydra.sweep.dir='{quoted}'"], multirun=True)
    jobs = [[text for text in run if not parse(text).is_hydra_override()] for run in runs]
    try:
        launcher = app.launcher(cfg, task or _run_job)
        in_workers = "joblib" in str(cfg.hydra.launcher._target_)
        with workers.stopped_with_this_process() if in_workers else contextlib.nullcontext():
            for result in launcher.launch(jobs, initial_job_idx=0):
                _ = result.return_value  # raises what a run raised
    except Exception as error:  # launchers are plugins
        if (folder / RUNS).exists():
            raise
        for parent in missing:
            with contextlib.suppress(OSError):  # another process may have put something there meanwhile
                parent.rmdir()
        raise UsageError(f"hydra/launcher: cannot start the runs: {first_line(error)}") from error
    return folder


def _run_job(cfg: DictConfig) -> None:
    """Train one of them. A failure is recorded and shown already: the runs after it still begin."""
    if workers.is_worker() and stopping.requested() is not None:
        return
    folder = paths.run_dir(cfg)
    writer = run_folder.JsonlWriter(hydra_app.sweep_dir() / RUNS)
    writer.append({"run": str(folder)})
    writer.close()
    try:
        train(cfg, folder, hydra_app.origin())
    except UsageError as error:
        print(f"rlexp: {error}", file=sys.stderr)
    except RunFailed:
        pass
    except stopping.Stopped:
        if not workers.is_worker():
            raise
