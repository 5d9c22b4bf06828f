"""A larger budget for a finished run: a copy continues from its last checkpoint if that equals training from scratch.

The budget is part of the variant, so that the longer run has its own folder and tables of the shorter one stay as
they are.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from rlexp import registry
from rlexp.config import paths
from rlexp.errors import UsageError
from rlexp.runs import folder as run_folder
from rlexp.system.files import open_file, read_text

_BUDGET = re.compile(r"^total_timesteps: (\d+)$", flags=re.MULTILINE)
_CONFIG_BYTES = 64 << 10


def obstacle(cfg: DictConfig) -> str | None:
    """Say why a run of these settings with a larger budget is not its continuation, None where it is.

    :param cfg: config of either run
    """
    if cfg.total_timesteps is None or cfg.total_episodes is not None:
        return "only a budget of steps alone can be extended: another one ends within a rollout"
    if cfg.hardware.ray is not None:
        return "hardware=ray: what its actors and replay shards hold is not kept"
    schema: Any = registry.algo(cfg.algo.name).config
    settings = OmegaConf.to_container(cfg.algo, resolve=True)
    if not hasattr(schema, "budget_dependence"):
        return f"algo={cfg.algo.name}: it does not say that nothing in it depends on the budget"
    reason: str | None = schema.budget_dependence(settings)
    return None if reason is None else f"algo={cfg.algo.name}: {reason}"


def find_shorter(cfg: DictConfig, folder: Path) -> Path | None:
    """Return the longest finished run of the same settings, seed and versions with a smaller budget, None without one.

    :param folder: of the run that is to be trained
    """
    if cfg.total_timesteps is None or cfg.total_episodes is not None:
        return None
    budgets: dict[int, Path] = {}
    for path in folder.parent.parent.glob(f"*/{folder.name}/{run_folder.CONFIG}"):
        try:
            match = _BUDGET.search(read_text(path, _CONFIG_BYTES))
        except (OSError, ValueError):
            continue
        if match is not None and int(match[1]) < cfg.total_timesteps:
            budgets[int(match[1])] = path.parent
    for budget in sorted(budgets, reverse=True):
        shorter = cfg.copy()
        shorter.total_timesteps = budget
        found = paths.run_dir(shorter)
        if (found / run_folder.RECORD).is_file() and _can_continue(found):
            return found
    return None


def _can_continue(folder: Path) -> bool:
    from rlexp.runs.checkpoint.files import available  # with torch

    try:
        record = run_folder.read_record(folder)
    except UsageError:
        return False
    same = record["status"] == "finished" and record.get("versions") == run_folder.versions()
    return same and bool(available(folder / run_folder.CHECKPOINTS))


def prepare(source: Path, folder: Path) -> dict[str, Any] | None:
    """Copy what a run continues from into a new run folder, which appears as a whole or not at all.

    :param source: finished run; only read
    :param folder: does not exist yet, or is empty
    :return: the entry ``extended_from`` of the record; None when no checkpoint of the run is intact
    :raises UsageError: when there is a link in the finished run
    """
    from rlexp.runs.checkpoint.files import CheckpointError, available, read  # with torch

    record = run_folder.read_record(source)
    for checkpoint in available(source / run_folder.CHECKPOINTS):
        try:
            _, continues = read(checkpoint)
        except CheckpointError:
            continue
        if any(run_folder.mismatch(source / name, extent) for name, extent in continues.items()):
            continue
        temporary = folder.with_name(f".{folder.name}.extending")
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            copy = temporary / run_folder.CHECKPOINTS / checkpoint.name
            copy.mkdir(parents=True)
            for path in checkpoint.iterdir():
                with open_file(path, "rb") as file, open_file(copy / path.name, "wb") as target:
                    shutil.copyfileobj(file, target)
            for name, extent in continues.items():
                with open_file(source / name, "rb") as file, open_file(temporary / name, "wb") as target:
                    target.write(file.read(extent.length))
            temporary.rename(folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return {
            "run": str(source.resolve()),
            "timesteps": int(checkpoint.name.partition("-")[0]),
            "model_sha256": run_folder.sha256(source / "model.zip"),
            "started": record.get("started"),
        }
    return None
