"""TensorBoard's event files, through torch's writer."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from rlexp.system.files import remove_tree

FOLDER = "tensorboard"


class TensorBoardMirror:
    """Copies a run's rows to TensorBoard; the axis is the environment step.

    :param folder: the run folder; event files of earlier attempts in it are replaced
    :param config: the complete resolved config, shown as text
    """

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        writer: Any = import_module("torch.utils.tensorboard").SummaryWriter  # an extra, which may be missing
        remove_tree(folder / FOLDER, folder)
        self._writer = writer(str(folder / FOLDER))
        self._text("config", json.dumps(config, indent=2))

    def log(self, row: dict[str, Any]) -> None:
        """Write a row of training metrics.

        :param row: numbers by name, ``timesteps`` among them
        """
        self._scalars(row, "")

    def log_evaluation(self, row: dict[str, Any]) -> None:
        """Write an evaluation under ``eval/``.

        :param row: as in ``evaluations.jsonl``
        """
        self._scalars(row, "eval/")

    def log_episode(self, path: Path) -> None:
        """Write a transcript; frames stay in the run folder.

        :param path: of either
        """
        if path.suffix == ".txt":
            self._text("episode", path.read_text(encoding="utf-8"))

    def close(self, final: dict[str, Any], exit_code: int) -> None:
        """End the event file.

        :param final: the last evaluation, which has been logged
        :param exit_code: does not matter here
        """
        self._writer.close()

    def _text(self, name: str, text: str) -> None:
        indented = "".join(f"    {line}\n" for line in text.splitlines())  # Markdown shows it as it is
        self._writer.add_text(name, indented)

    def _scalars(self, row: dict[str, Any], prefix: str) -> None:
        for key, value in row.items():
            if key != "timesteps" and isinstance(value, (int, float)):
                name = f"{prefix}{key}" if prefix or "/" in key else f"time/{key}"
                self._writer.add_scalar(name, value, row["timesteps"])
