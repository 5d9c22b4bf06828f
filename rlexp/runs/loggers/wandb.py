"""Weights & Biases through its own client; offline unless asked, so that no account, network or prompt is needed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from rlexp.errors import UsageError

# What the client would otherwise collect about the machine.
_ANONYMOUS: dict[str, Any] = {"host": "", "username": "", "email": "", "program": "rlexp"}


class WandbSink:
    """Mirrors a run to W&B; rlexp never reads it back.

    :param mode: ``offline`` or ``online``
    :param folder: the run folder; W&B's own is ``<folder>/wandb``
    :param run_id: the same for every attempt of a run, so that all of them sync into one W&B run
    :param config: the complete resolved config
    :param group: label shared by all seeds of a setting
    :param name: of the W&B run
    :param project: of W&B
    :param entity: user or team of W&B; None: the default one
    :param tags: of the W&B run
    :param metadata: whether W&B also stores the command line, paths, host, user, git commit and installed packages
    :raises UsageError: when W&B does not start
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
        metadata: bool = False,
    ) -> None:
        os.environ.setdefault("WANDB_SILENT", "true")
        if mode != "online":
            # The client's telemetry has no setting; its processes read this variable when they start.
            os.environ["WANDB_ERROR_REPORTING"] = "false"
        import wandb

        settings = wandb.Settings(
            console="off",
            silent=True,
            # Without W&B's links in the run folder; links there are not followed anyway.
            symlink=False,
            x_disable_stats=True,
            x_disable_meta=not metadata,
            x_disable_machine_info=not metadata,
            x_save_requirements=metadata,
            disable_git=not metadata,
            disable_job_creation=True,
            save_code=False,
            **({} if metadata else _ANONYMOUS),
        )
        try:
            self._run = wandb.init(
                mode="online" if mode == "online" else "offline",
                dir=str(folder),
                id=run_id,
                config={key: value for key, value in config.items() if metadata or key != "output_dir"},
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
                f"logger.wandb={mode}: W&B does not start ({first_line}); logger=wandb_offline needs no account"
            ) from error
        # W&B's own step drops rows that go back; ours are plain values on axes of their own.
        self._run.define_metric("timesteps")
        self._run.define_metric("episodes")
        self._run.define_metric("*", step_metric="timesteps")

    def log(self, row: dict[str, Any]) -> None:
        """Log one row of training metrics.

        :param row: numbers by name, ``timesteps`` and ``episodes`` among them
        """
        self._run.log(row)

    def log_evaluation(self, row: dict[str, Any]) -> None:
        """Log one evaluation under ``eval/``.

        :param row: numbers by name, ``timesteps`` and ``episodes`` among them
        """
        axes = {key: row[key] for key in ("timesteps", "episodes")}
        self._run.log({**axes, **{f"eval/{key}": value for key, value in row.items() if key not in axes}})

    def close(self, final: dict[str, Any], exit_code: int) -> None:
        """Write the final evaluation to the summary and end the W&B run.

        :param final: numbers by name
        :param exit_code: 0 when the run finished
        """
        self._run.summary.update({f"final/{key}": value for key, value in final.items()})
        logs = Path(self._run.settings.log_user).parent
        self._run.finish(exit_code=exit_code)
        # A run folder holds no link that leaves it: this one leads to the user's cache.
        with contextlib.suppress(OSError):
            (logs / "debug-core.log").unlink()
