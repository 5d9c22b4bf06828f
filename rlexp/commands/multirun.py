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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from rlexp.commands import compose as composing
from rlexp.commands import workers
from rlexp.commands.diagnose import first_line, parse
from rlexp.commands.preflight import check_writable
from rlexp.errors import UsageError

if TYPE_CHECKING:
    from hydra._internal.hydra import Hydra

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


def expand(hydra: Hydra, overrides: Sequence[str]) -> list[list[str]]:
    """Return the overrides of every run, the first key varying slowest.

    :raises UsageError: when a key has no value or there are more than ``MAX_RUNS`` runs
    """
    values: dict[str, list[str]] = {}
    for word in overrides:
        override = parse(word, hydra.config_loader)
        key = override.get_key_element()
        if not override.is_sweep_override():
            values[key] = [word]
            continue
        if override.is_hydra_override():
            raise UsageError(
                f"{word}: several values given; Hydra's own settings hold for all runs, give one"
            )
        if not override.is_discrete_sweep():
            raise UsageError(f"{word}: an interval cannot be enumerated; list the values, or use range(...)")
        try:
            found = list(itertools.islice(_unshuffled(override).sweep_string_iterator(), MAX_RUNS + 1))
        except Exception as error:
            raise UsageError(f"{word}: cannot be enumerated ({first_line(error)})") from error
        if not found:
            raise UsageError(f"{word}: no value at all; a range holds its start and ends before its stop")
        values[key] = [f"{key}={value}" for value in found]
        if math.prod(map(len, values.values())) > MAX_RUNS:
            raise UsageError(f"{word}: more than {MAX_RUNS:,} runs in one command; split them into several")
    return [list(run) for run in itertools.product(*values.values())]


def _unshuffled(override: Any) -> Any:
    if getattr(override.value(), "shuffle", False):  # would enumerate whatever number of values
        override.value().shuffle = False
    return override


def launch(hydra: Hydra, runs: Sequence[Sequence[str]], task: Callable[[DictConfig], float | None]) -> Path:
    """Run all of them with the launcher that the command line chose.

    :param task: trains one run; called in whatever process the launcher starts
    :return: the multirun's own folder, which lists them
    :raises UsageError: when the launcher cannot start
    """
    from hydra._internal.callbacks import Callbacks
    from hydra.core.plugins import Plugins
    from hydra.types import HydraContext, RunMode

    def compose(extra: Sequence[str]) -> DictConfig:
        cfg: DictConfig = hydra.compose_config(
            composing.CONFIG_NAME, [*runs[0], *extra], run_mode=RunMode.MULTIRUN, with_log_configuration=False
        )
        return cfg

    folder = Path(str(OmegaConf.select(compose(()), "hydra.sweep.dir"))).absolute()
    check_writable(folder, "hydra.sweep.dir")
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    quoted = str(folder).replace("\\", "\\\\").replace("'", "\\'")
    cfg = compose(
        ["hydra.mode=MULTIRUN", f"hydra.sweep.dir='{quoted}'"]
    )  # the same for all, whatever the time
    jobs = [[word for word in run if not parse(word).is_hydra_override()] for run in runs]
    try:
        launcher = Plugins.instance().instantiate_launcher(
            hydra_context=HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks(cfg)),
            task_function=task,
            config=cfg,
        )
        in_workers = "joblib" in str(cfg.hydra.launcher._target_)
        with workers.stopped_with_this_process() if in_workers else contextlib.nullcontext():
            for result in launcher.launch(jobs, initial_job_idx=0):
                _ = result.return_value  # raises what a run raised
    except Exception as error:
        if (folder / RUNS).exists():
            raise
        for parent in missing:
            with contextlib.suppress(OSError):  # somebody else may have put something there meanwhile
                parent.rmdir()
        raise UsageError(f"hydra/launcher: cannot start the runs: {first_line(error)}") from error
    return folder
