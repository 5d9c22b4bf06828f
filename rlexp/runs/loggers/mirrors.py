"""Copies of a run's rows for other tools, W&B and TensorBoard; rlexp never reads them back.

Neither tool can take back what it has been given, and a run that is resumed repeats what came after its checkpoint.
So a copy begins with the rows that the run folder holds: with every attempt it is made again, whole and without
duplicates.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

from omegaconf import DictConfig

from rlexp import registry
from rlexp.config import paths
from rlexp.runs import folder as run_folder
from rlexp.runs.loggers.tensorboard import TensorBoardMirror
from rlexp.runs.loggers.wandb import WandbMirror


class Mirror(Protocol):
    """One copy."""

    def log(self, row: dict[str, Any]) -> None:
        """Take a row of training metrics.

        :param row: numbers by name, ``timesteps`` and ``episodes`` among them
        """

    def log_evaluation(self, row: dict[str, Any]) -> None:
        """Take an evaluation.

        :param row: as in ``evaluations.jsonl``
        """

    def log_episode(self, path: Path) -> None:
        """Take an evaluation episode.

        :param path: its transcript or its frames
        """

    def close(self, final: dict[str, Any], exit_code: int) -> None:
        """Take the last evaluation and end.

        :param final: as in ``evaluations.jsonl``; empty without one
        :param exit_code: 0 when the run has finished
        """


def open_mirrors(cfg: DictConfig, folder: Path, record: dict[str, Any]) -> list[Mirror]:
    """Open the copies that are wanted and give them the rows of earlier attempts.

    :param cfg: config of the run
    :param folder: run folder; its files of rows end where the run continues
    :param record: of the run
    :raises UsageError: when one of them does not start
    """
    found: list[Mirror] = []
    if cfg.logger.tensorboard:
        found.append(TensorBoardMirror(folder, paths.resolved(cfg)))
    if cfg.logger.mode != "disabled":
        label, algo = paths.env_label(cfg), cfg.algo.name
        found.append(
            WandbMirror(
                cfg.logger.mode,
                folder,
                record["wandb_id"],
                paths.resolved(cfg),
                group=f"{algo}-{label}-{record['variant']}",
                name=cfg.name or f"{algo}-{label}-s{cfg.seed}",
                project=cfg.logger.project,
                entity=cfg.logger.entity,
                tags=list(cfg.tags),
                episode=registry.env(cfg.env.name).episode,
                metadata=cfg.logger.metadata,
                system_metrics=cfg.logger.system_metrics,
            )
        )
    if found:
        _repeat(folder, found)
    return found


def _repeat(folder: Path, mirrors: Sequence[Mirror]) -> None:
    for is_evaluation, row in _rows(folder):
        for mirror in mirrors:
            (mirror.log_evaluation if is_evaluation else mirror.log)(row)


def _rows(folder: Path) -> Iterator[tuple[bool, dict[str, Any]]]:
    """Return both kinds of rows in the order of their steps."""
    metrics = ((False, row) for row in run_folder.read_jsonl(folder / run_folder.METRICS))
    evaluations = ((True, row) for row in run_folder.read_evaluations(folder))
    yield from heapq.merge(evaluations, metrics, key=lambda one: itemgetter("timesteps")(one[1]))
