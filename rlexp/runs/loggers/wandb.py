"""Weights & Biases through its own client; offline unless asked, so that no account, network or prompt is needed."""

from __future__ import annotations

import contextlib
import html
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlexp.errors import UsageError
from rlexp.system.files import names, remove_tree

FOLDER = "wandb"

# What the client would otherwise collect about the machine.
_ANONYMOUS: dict[str, Any] = {"host": "", "username": "", "email": "", "program": "rlexp"}
_AXES = ("timesteps", "episodes", "updates")
_NO_FIGURES = ("n", "wall_s")
_BEST = ("eval/return_mean", "eval/success_rate")


class WandbMirror:
    """Copies a run's rows to W&B.

    :param mode: ``offline`` or ``online``
    :param folder: the run folder; W&B's own is ``<folder>/wandb``, where files of earlier attempts are replaced
    :param run_id: the same for every attempt of a run, so that all of them are one W&B run
    :param config: the complete resolved config
    :param group: label shared by all seeds of a setting
    :param name: of the W&B run
    :param project: of W&B
    :param entity: user or team of W&B; None: the default one
    :param tags: of the W&B run
    :param episode: what an episode is called, e.g. ``"dialogue"``
    :param metadata: whether W&B also stores the command line, paths, host, user, git commit and installed packages
    :param system_metrics: whether W&B also stores the use of CPU, memory, disk and GPU
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
        episode: str = "episode",
        metadata: bool = False,
        system_metrics: bool = False,
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
            x_disable_stats=not system_metrics,
            x_disable_meta=not metadata,
            x_disable_machine_info=not (
                metadata or system_metrics
            ),  # without it there are no system metrics either
            x_save_requirements=metadata,
            disable_git=not metadata,
            disable_job_creation=True,
            save_code=False,
            **({} if metadata else _ANONYMOUS),
        )
        _remove_earlier(folder, run_id)
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
                f"logger.mode={mode}: W&B does not start ({first_line}); logger=wandb needs no account"
            ) from error
        self._wandb = wandb
        # W&B's own step drops rows that go back; ours are plain values on axes of their own. A metric of W&B has
        # one axis, so that evaluations are logged once for each.
        self._by = {"episodes": f"eval_by_{episode}", "updates": "eval_by_update"}
        for axis in _AXES:
            self._run.define_metric(axis)
        self._run.define_metric("*", step_metric="timesteps")
        for axis, section in self._by.items():
            self._run.define_metric(f"{section}/*", step_metric=axis)
        for metric in _BEST:
            self._run.define_metric(metric, step_metric="timesteps", summary="max,last")

    def log(self, row: dict[str, Any]) -> None:
        """Log a row of training metrics.

        :param row: numbers by name, ``timesteps`` and ``episodes`` among them
        """
        self._run.log(row)

    def log_evaluation(self, row: dict[str, Any]) -> None:
        """Log an evaluation under ``eval/``, over steps, and again over episodes and over updates.

        :param row: as in ``evaluations.jsonl``
        """
        axes = {key: row[key] for key in _AXES if key in row}
        values = {key: value for key, value in _numbers(row).items() if key not in axes}
        found = {**axes, **{f"eval/{key}": value for key, value in values.items()}}
        for axis, section in self._by.items():
            if axis in axes:
                found |= {f"{section}/{key}": values[key] for key in values if key not in _NO_FIGURES}
        self._run.log(found)

    def log_episode(self, path: Path) -> None:
        """Log an evaluation episode as ``episode``.

        :param path: its transcript or its frames
        """
        if path.suffix == ".txt":
            text = html.escape(path.read_text(encoding="utf-8"))
            media: Any = self._wandb.Html(f"<pre>{text}</pre>", inject=False)
        else:
            media = self._wandb.Video(str(path))
        self._log_media("episode", media)

    def close(self, final: dict[str, Any], exit_code: int) -> None:
        """Write the final evaluation to the summary and, of a finished run, to tables; end the W&B run.

        :param final: as in ``evaluations.jsonl``; empty without one
        :param exit_code: 0 when the run has finished
        """
        try:
            self._run.summary.update({f"final/{key}": value for key, value in _numbers(final).items()})
            if exit_code == 0:
                for name, columns, rows in _tables(final):
                    self._log_media(f"final/{name}", self._wandb.Table(columns=columns, data=rows))
        finally:
            logs = Path(self._run.settings.log_user).parent
            self._run.finish(exit_code=exit_code)
            # A run folder holds no link that leaves it: this one leads to the user's cache.
            with contextlib.suppress(OSError):
                (logs / "debug-core.log").unlink()

    def _log_media(self, key: str, media: Any) -> None:
        # Binding it here leaves out the artifact that `log` makes of a table: that would store a path on this machine.
        media.bind_to_run(self._run, key, self._run.step)
        self._run.log({key: media})


def _remove_earlier(folder: Path, run_id: str) -> None:
    for name in names(folder / FOLDER, folder):
        if name.startswith(("offline-run-", "run-")) and name.endswith(f"-{run_id}"):
            remove_tree(folder / FOLDER / name, folder)


def _numbers(row: dict[str, Any]) -> dict[str, float]:
    return {key: value for key, value in row.items() if isinstance(value, (int, float))}


def _tables(final: dict[str, Any]) -> list[tuple[str, list[Any], list[Any]]]:
    """Return name, columns and rows of the tables that an evaluation makes: its figures, and lists of rows in it."""
    numbers = {key: value for key, value in _numbers(final).items() if key not in (*_AXES, *_NO_FIGURES)}
    figures: list[Any] = [
        [key.removesuffix("_mean"), value, numbers.get(f"{key.removesuffix('_mean')}_std"), final.get("n")]
        for key, value in numbers.items()
        if not (key.endswith("_std") and f"{key.removesuffix('_std')}_mean" in numbers)
    ]
    found = [("evaluation", ["metric", "mean", "std", "episodes"], figures)] if figures else []
    for name, value in final.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            columns: list[Any] = list(value[0])
            found.append((name, columns, [_cells(row, columns) for row in value]))
    return found


def _cells(row: dict[str, Any], columns: Sequence[str]) -> list[Any]:
    return [row.get(column) for column in columns]
