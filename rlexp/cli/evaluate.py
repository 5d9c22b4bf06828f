"""``rlexp evaluate RUN [evaluation.episodes=500 ...]``: evaluate a trained policy again."""

from __future__ import annotations

from pathlib import Path

from omegaconf import DictConfig

from rlexp.cli.arguments import Parser
from rlexp.config.check import check
from rlexp.config.diagnose import override
from rlexp.errors import UsageError
from rlexp.runs import folder as run_folder
from rlexp.runs.loading import as_configured, load_config, load_trained
from rlexp.runs.messages import summary
from rlexp.runs.preflight import check_env
from rlexp.system.imports import allow_current_folder

EVALUATED = "evaluated.jsonl"


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "evaluate",
        "RUN [key=value ...]",
        "Evaluate the trained policy of a run again; the row is appended to evaluated.jsonl in its folder.",
        "  rlexp evaluate RUN\n  rlexp evaluate RUN evaluation.episodes=500 evaluation.seed=7",
    )
    parsed.add_names("RUN", "folder of a trained run")
    parsed.add_overrides("keys of its config, for this evaluation alone", "evaluation", "env", "hardware")
    return parsed


def main(argv: list[str]) -> int:
    """Evaluate, and print and append the row."""
    args = parser().parse(argv)
    if not args.names:
        raise UsageError("evaluate: needs a run folder, e.g. rlexp evaluate outputs/runs/...")
    folder = Path(args.names[0])
    run_folder.read_record(folder)
    cfg = load_config(folder)
    allow_current_folder(args.overrides)
    with as_configured(folder):
        override(cfg, args.overrides)
        check(cfg)
        check_env(cfg)
        row = _evaluate(cfg, folder)
    writer = run_folder.JsonlWriter(folder / EVALUATED)
    writer.append({"overrides": args.overrides, "at": run_folder.now(), **row})
    writer.close()
    print(summary(row, cfg.env.name))
    for key, value in row.items():
        if not isinstance(value, list):  # parts of an episode are in the file
            print(f"  {key:20} {value:,.6g}" if isinstance(value, float) else f"  {key:20} {value}")
    return 0


def _evaluate(cfg: DictConfig, folder: Path) -> dict[str, object]:
    from rlexp.runs.factories import make_evaluator

    if cfg.evaluation.episodes < 1:
        raise UsageError("evaluation.episodes: 0 given, must be at least 1")
    evaluator = make_evaluator(cfg)
    row = evaluator.evaluate(load_trained(cfg, folder))
    evaluator.close()
    return row
