"""What a sweep file defines: runs that must exist, the columns of a table, the panels of a figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlexp.errors import UsageError, did_you_mean

UNITS = {"": 1.0, "%": 100.0, "s": 1.0, "min": 1.0 / 60.0, "dialogues": 1.0, "episodes": 1.0}


@dataclass(frozen=True)
class Row:
    """One setting, trained with every seed.

    :param label: name in tables, plots and messages
    :param overrides: overrides, those common to the sweep included
    :param paper: published values by column name, ``(mean, standard deviation or None)``
    """

    label: str
    overrides: tuple[str, ...]
    paper: Mapping[str, tuple[float, float | None]] = field(default_factory=dict)

    @property
    def algorithm(self) -> str | None:
        """The algorithm that the overrides choose."""
        chosen = [text.partition("=")[2] for text in self.overrides if text.startswith("algo=")]
        return chosen[-1] if chosen else None


@dataclass(frozen=True)
class Column:
    """One measure of a table.

    :param name: key of the paper's values
    :param label: heading
    :param metric: key of an evaluation row, or of the record where ``source`` is ``record``; nested keys are dotted
    :param source: ``evaluation`` or ``record``
    :param at: training episodes at which the evaluation was made; None: the last one
    :param threshold: instead of a value: training episodes until the mean curve of ``metric`` reaches it
    :param average: the mean over all evaluations instead of one of them
    :param last: the mean over so many evaluations at the end instead of the last one
    :param unit: one of :data:`UNITS`; decides the factor
    :param digits: decimals
    :param better: ``higher`` or ``lower``
    :param relative_to: label of the row whose mean divides the values of every row
    :param volatile: differs from machine to machine and from attempt to attempt: kept apart
    :param comparable: whether the paper's value can be compared with ours
    """

    name: str
    label: str
    metric: str
    source: str = "evaluation"
    at: int | None = None
    threshold: float | None = None
    average: bool = False
    last: int = 1
    unit: str = ""
    digits: int = 1
    better: str = "higher"
    relative_to: str | None = None
    volatile: bool = False
    comparable: bool = True

    @property
    def factor(self) -> float:
        """What a stored value is multiplied with for display."""
        return UNITS[self.unit]


@dataclass(frozen=True)
class Contrast:
    """The difference between two rows, ``of`` minus ``minus``, in the named columns."""

    of: str
    minus: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class CurvePair:
    """Two rows whose curves are held against each other to see how much one setting matters."""

    label: str
    rows: tuple[str, str]
    metric: str
    unit: str = "%"


@dataclass(frozen=True)
class EfficiencyPair:
    """How soon the mean curve of row ``of`` reaches the score with which row ``reaches`` ends.

    :param last: evaluations whose mean is a point of the curves, and the score at the end
    :param x: key of an evaluation row in which that is counted
    """

    of: str
    reaches: str
    metric: str = "return_mean"
    last: int = 1
    x: str = "timesteps"
    digits: int = 2


@dataclass(frozen=True)
class Aggregate:
    """Settings held against a baseline over several tasks; the rows are called ``<task> <setting>``.

    :param last: evaluations at the end whose mean is the final score
    :param x: key of an evaluation row in which training is counted
    """

    tasks: tuple[str, ...]
    settings: tuple[str, ...]
    baseline: str
    metric: str = "return_mean"
    last: int = 1
    x: str = "timesteps"


@dataclass(frozen=True)
class Panel:
    """One pair of axes of a figure.

    :param log: whether x is drawn logarithmically
    :param x: key of an evaluation row to draw over
    :param references: published points: ``{row, at, value, std (optional)}``, in the panel's unit
    :param levels: rows among them whose training this axis does not count: drawn as a line at their last value
    :param periods: draw over the parts of an episode, e.g. the months of a year, instead: of the ``first_episode``
        of training, or of the last ``evaluation``; ``x`` is then a key of such a part
    """

    title: str
    metric: str
    unit: str = ""
    ylabel: str = ""
    x: str = "episodes"
    xlabel: str = "training episodes"
    log: bool = True
    rows: tuple[str, ...] = ()
    references: tuple[Mapping[str, Any], ...] = ()
    levels: tuple[str, ...] = ()
    periods: str = ""


@dataclass(frozen=True)
class Sweep:
    """A sweep file, read and checked.

    :param runs_of: name of the sweep that trains the runs; its own name unless the file borrows them
    """

    name: str
    title: str
    seeds: tuple[int, ...]
    rows: tuple[Row, ...]
    seconds_per_run: float
    runs_of: str
    columns: tuple[Column, ...] = ()
    contrasts: tuple[Contrast, ...] = ()
    sensitivity: tuple[CurvePair, ...] = ()
    sample_efficiency: tuple[EfficiencyPair, ...] = ()
    aggregate: Aggregate | None = None
    panels: tuple[Panel, ...] = ()
    notes: tuple[str, ...] = ()

    def row(self, label: str) -> Row:
        """:raises UsageError: when no row has this label

        :param label: label of a row
        """
        for row in self.rows:
            if row.label == label:
                return row
        labels = [row.label for row in self.rows]
        raise UsageError(
            f"sweeps/{self.name}.yaml: no row is called '{label}'; there are {', '.join(labels)}"
            f"{did_you_mean(label, labels)}"
        )


@dataclass(frozen=True)
class Expected:
    """A run that must exist.

    :param label: row of the sweep
    :param seed: its seed
    :param folder: where it lies once it has been trained
    :param overrides: the overrides that train it, seed included
    :param reported: everything in its config that decides its numbers; see :func:`rlexp.config.paths.reported`
    """

    label: str
    seed: int
    folder: Path
    overrides: tuple[str, ...]
    reported: Mapping[str, Any]


def slug(label: str) -> str:
    """Turn a row label into a file name.

    :param label: label of a row
    """
    kept = "".join(
        character if character.isalnum() or character in ".=-" else "_" for character in label.lower()
    )
    return "_".join(part for part in kept.split("_") if part) or "row"


def last_line(text: Any) -> str:
    """Return the last line that says something.

    :param text: of any length
    """
    lines = [line.strip() for line in str(text or "").splitlines() if line.strip()]
    return lines[-1] if lines else ""
