"""``rlexp evaluate RUN [evaluation.episodes=500 ...]``: measure a trained policy again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rlexp import record
from rlexp.commands.arguments import Parser
from rlexp.commands.messages import summary
from rlexp.commands.preflight import check_task
from rlexp.config.check import check
from rlexp.errors import UsageError, did_you_mean
from rlexp.imports import allow_current_folder, exclude
from rlexp.stored import read_config

EVALUATED = "evaluated.jsonl"
_ALLOWED = ("evaluation", "env", "hardware")


def parser() -> Parser:
    """Return the parser of the command's arguments."""
    parsed = Parser(
        "evaluate",
        "Evaluate the trained policy of a run folder once more; the row is appended to its evaluated.jsonl.",
        "  rlexp evaluate RUN\n  rlexp evaluate RUN evaluation.episodes=500 evaluation.seed=7",
    )
    parsed.add_argument("words", nargs="*", metavar="RUN | key=value", help="its folder; evaluation.*, env.*")
    return parsed


def main(argv: list[str]) -> int:
    """Evaluate the trained policy of a run folder; the row is appended to its ``evaluated.jsonl``."""
    argv = parser().parse(argv).words
    folders = [word for word in argv if "=" not in word or Path(word).is_dir()]
    if len(folders) != 1:
        raise UsageError(
            "evaluate: name one run folder, e.g. rlexp evaluate outputs/runs/... evaluation.episodes=500"
        )
    folder = Path(folders[0])
    words = [word for word in argv if word not in folders]
    record.read_record(folder)
    cfg = load_config(folder)
    allow_current_folder(words)
    with as_configured(folder):
        _override(cfg, words)
        check(cfg)
        check_task(cfg)
        row = _evaluate(cfg, folder)
    writer = record.JsonlWriter(folder / EVALUATED)
    writer.append({"overrides": words, "at": record.now(), **row})
    writer.close()
    print(summary(row))
    for key, value in row.items():
        print(f"  {key:20} {value:.4g}" if isinstance(value, float) else f"  {key:20} {value}")
    return 0


def load_config(folder: Path) -> DictConfig:
    """Return the config of a run, perhaps somebody else's: no module that lies in its folder is imported from now on.

    :raises UsageError: when it cannot be read, or names a module that is no environment's
    """
    from rlexp.config.schema import Config

    stored = read_config(folder / record.CONFIG)
    try:
        cfg = OmegaConf.merge(OmegaConf.structured(Config), stored)
    except (OmegaConfBaseException, ValueError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise UsageError(f"{folder}: damaged run, {record.CONFIG} cannot be read ({first})") from error
    assert isinstance(cfg, DictConfig)
    exclude(folder, str(OmegaConf.select(cfg, "env.id")))
    return cfg


@contextmanager
def as_configured(folder: Path) -> Iterator[None]:
    """Say in one line what a config that cannot be built makes fail; any layer below may be the one to notice.

    :raises UsageError: instead of whatever else was raised
    """
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise UsageError(
            f"{folder}: cannot be used as its {record.CONFIG} says ({type(error).__name__}: {first})"
        ) from error


def _override(cfg: DictConfig, words: list[str]) -> None:
    for word in words:
        key, _, text = word.partition("=")
        if key.split(".")[0] not in _ALLOWED:
            raise UsageError(
                f"{key}: evaluate takes evaluation.*, env.* and hardware.*{did_you_mean(key, _ALLOWED)}"
            )
        parent = OmegaConf.select(cfg, key.rpartition(".")[0])
        leaf = key.rpartition(".")[2]
        if not isinstance(parent, DictConfig) or leaf not in parent:
            known = [str(name) for name in parent] if isinstance(parent, DictConfig) else []
            raise UsageError(f"{key}: there is no such key{did_you_mean(leaf, known)}")
        try:
            OmegaConf.update(cfg, key, OmegaConf.from_dotlist([f"value={text}"]).value)
        except (OmegaConfBaseException, ValueError) as error:
            raise UsageError(f"{key}: '{text}' given; {str(error).splitlines()[0]}") from error


def _evaluate(cfg: DictConfig, folder: Path) -> dict[str, object]:
    from rlexp.factories import make_evaluator

    if cfg.evaluation.episodes < 1:
        raise UsageError("evaluation.episodes: 0 given, must be at least 1")
    evaluator = make_evaluator(cfg)
    row = evaluator.evaluate(load_trained(cfg, folder))
    evaluator.close()
    return row


def load_trained(cfg: DictConfig, folder: Path) -> Any:
    """Return a run's algorithm with the weights with which it ended; its training tasks are closed.

    :raises UsageError: when it has not ended
    """
    import torch as th

    from rlexp import registry
    from rlexp.evaluation import load_policy
    from rlexp.factories import make_model, make_training_env

    th.set_num_threads(cfg.hardware.torch_threads or 1)
    archive = folder / "model.zip"
    trains = registry.algo(cfg.algo.name).trains
    if trains and not archive.is_file():
        raise UsageError(f"{folder}: no trained policy yet (model.zip is missing); train it to the end first")
    env = make_training_env(cfg)
    model = make_model(cfg, env)
    if trains:
        load_policy(model, archive, cfg.hardware.device)
    env.close()
    return model
