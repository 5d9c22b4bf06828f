"""Weights & Biases through its own client; offline unless asked, so that no account, network or prompt is needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rlexp.errors import UsageError


class WandbSink:
    """Mirrors a run. Nothing of ours ever reads it back.

    :param mode: ``offline`` or ``online``
    :param folder: the run folder; W&B's own lies in ``<folder>/wandb``
    :param run_id: the same for every attempt of a run, so that all of them sync into one
    :param config: the complete resolved config
    :param group: everything that is the same but the seed
    """

    def __init__(
        self,
        mode: str,
        folder: Path,
        run_id: str,
        config: dict[str, Any],
        group: str,
        name: str,
        project: str,
        entity: str | None,
        tags: list[str],
    ) -> None:
        os.environ.setdefault("WANDB_SILENT", "true")
        import wandb

        settings = wandb.Settings(console="off", silent=True, x_disable_stats=True)
        try:
            self._run = wandb.init(
                mode="online" if mode == "online" else "offline",
                dir=str(folder),
                id=run_id,
                config=config,
                group=group,
                name=name,
                job_type="train",
                project=project,
                entity=entity,
                tags=tags,
                settings=settings,
                # Two runs in one process must never share a W&B run, whatever became of the first.
                reinit="finish_previous",
            )
        except wandb.errors.Error as error:
            first_line = (str(error).splitlines() or ["unknown error"])[0]
            raise UsageError(
                f"logger.wandb={mode}: W&B refused ({first_line}); logger=wandb_offline needs no account"
            ) from error
        # W&B's own step drops rows that go back; ours are plain values on axes of their own.
        self._run.define_metric("timesteps")
        self._run.define_metric("episodes")
        self._run.define_metric("*", step_metric="timesteps")

    def log(self, row: dict[str, Any]) -> None:
        """Log one row of training metrics."""
        self._run.log(row)

    def log_evaluation(self, row: dict[str, Any]) -> None:
        """Log one evaluation under ``eval/``."""
        axes = {key: row[key] for key in ("timesteps", "episodes")}
        self._run.log({**axes, **{f"eval/{key}": value for key, value in row.items() if key not in axes}})

    def close(self, final: dict[str, Any], exit_code: int) -> None:
        """Write the final numbers as the summary and end the W&B run."""
        self._run.summary.update({f"final/{key}": value for key, value in final.items()})
        self._run.finish(exit_code=exit_code)
