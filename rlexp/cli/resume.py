"""``rlexp resume RUN``: go on with an interrupted run, or with a finished one and a larger budget."""

from __future__ import annotations

from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from rlexp.cli.arguments import Parser
from rlexp.cli.result import show_result
from rlexp.config import compose as composing
from rlexp.config import natural, paths
from rlexp.config.check import check
from rlexp.config.diagnose import override
from rlexp.errors import RunFailed, UsageError
from rlexp.runs import extend, preflight
from rlexp.runs import folder as run_folder
from rlexp.runs.loading import as_configured, load_config
from rlexp.runs.messages import finished_line, quoted, short
from rlexp.runs.train import train
from rlexp.system.imports import allow_current_folder

_BUDGET = "total_timesteps"
_FREE = ("checkpoint", "evaluation", "logger", "hardware")


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "resume",
        "RUN [key=value ...]",
        "Resume an interrupted run with the settings in its folder, from any current folder.\n"
        "With a larger total_timesteps a finished run is continued, in a folder of its own.",
        "  rlexp resume RUN\n  rlexp resume RUN total_timesteps=1M",
    )
    parsed.add_names("RUN", "folder of a run")
    parsed.add_overrides("what does not change what is learned, and the budget", _BUDGET, *_FREE, "env")
    return parsed


def main(argv: list[str]) -> int:
    """Resume or extend one run."""
    args = parser().parse(argv)
    if not args.names:
        raise UsageError("resume: needs a run folder, e.g. rlexp resume outputs/runs/...")
    folder = Path(args.names[0]).absolute()
    record = run_folder.read_record(folder)
    overrides = natural.whole_numbers(args.overrides)
    budgets = [text for text in overrides if text.partition("=")[0] == _BUDGET]
    others = [text for text in overrides if text not in budgets]
    cfg = load_config(folder)
    allow_current_folder(args.overrides)
    before = paths.learning(cfg)
    override(cfg, others)
    if paths.learning(cfg) != before:
        raise UsageError(f"{' '.join(others)}: changes what is learned; train it as a run of its own")
    cfg.force = False
    override(cfg.copy(), budgets)  # a number?
    if budgets and str(cfg.total_timesteps) != budgets[-1].partition("=")[2]:
        cfg, folder, record = _extended(cfg, folder, record, budgets[-1])
    return _train(cfg, folder, record)


def _train(cfg: DictConfig, folder: Path, record: dict[str, object]) -> int:
    if (line := finished_line(folder, cfg)) is not None:
        more = extend.obstacle(cfg)
        hint = (
            f"rlexp resume {quoted(folder)} total_timesteps=... trains it further" if more is None else more
        )
        print(line.replace("force=true trains it from scratch", hint))
        return 0
    with as_configured(folder):
        check(cfg)
        preflight.check_writable(folder)
        if folder.exists():
            preflight.check_resumable(folder, cfg)
        preflight.check_env(cfg)
    origin: dict[str, object] = {key: record[key] for key in ("overrides", "choices") if key in record}
    try:
        if train(cfg, folder, origin):
            show_result(folder)
    except RunFailed:  # recorded and shown already
        return 1
    return 0


def _extended(
    stored: DictConfig, folder: Path, record: dict[str, object], budget: str
) -> tuple[DictConfig, Path, dict[str, object]]:
    """Return config, folder and origin of the longer run.

    :raises UsageError: when it would not be a continuation of the finished one
    """
    recorded = record.get("overrides")
    if record["status"] != "finished":
        raise UsageError(f"{budget}: {folder} is not finished; resume it first, without a budget")
    if not isinstance(recorded, list):
        raise UsageError(
            f"{budget}: the record of {folder} does not say how it was made; give the whole command"
        )
    reason = extend.obstacle(stored)
    if reason is not None:
        raise UsageError(
            f"{budget}: {short(folder)} cannot be continued: {reason}; train it as a run of its own"
        )
    kept = [text for text in recorded if not text.startswith(("output_dir=", "force=", f"{_BUDGET}="))]
    top = str(folder.parents[4]).replace("\\", "\\\\").replace("'", "\\'")
    cfg = composing.compose([*kept, budget, f"output_dir='{top}'"])
    if stored.total_timesteps >= cfg.total_timesteps:
        raise UsageError(f"{budget}: {short(folder)} has trained {stored.total_timesteps:,} steps already")
    shorter = cfg.copy()
    shorter.total_timesteps = stored.total_timesteps
    if paths.learning(shorter) != paths.learning(stored):
        raise UsageError(
            f"{budget}: settings of {short(folder)} have other defaults now; give the whole command"
        )
    for key in _FREE:
        OmegaConf.update(cfg, key, stored[key])
    target = paths.run_dir(cfg)
    if not target.exists() and extend.find_shorter(cfg, target) != folder:
        raise UsageError(
            f"{budget}: {short(folder)} has no checkpoint of these versions; give the whole command"
        )
    return cfg, target, {**record, "overrides": [*kept, budget]}
