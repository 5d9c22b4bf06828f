"""Which checkpoint a run resumes from: the newest one that is intact, whose rows are still there, and that fits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlexp.errors import UsageError
from rlexp.runs.checkpoint.files import CheckpointError, available, move_away, read
from rlexp.runs.folder import CHECKPOINTS, DISCARDED, Extent, mismatch

Restored = tuple[dict[str, Any], dict[str, Extent]]


def restore_newest(
    folder: Path,
    build: Callable[[], None],
    restore: Callable[[dict[str, Any]], None],
    notify: Callable[[str], None],
) -> Restored | None:
    """Build a run and restore its newest checkpoint that can be restored as a whole.

    A skipped checkpoint is reported in one line and renamed when an older one is used instead.
    When all of them are damaged the run starts anew, which gives the same results.

    :param folder: the run folder
    :param build: builds what a state is restored into; called before every attempt, and once when there is none
    :param restore: restores a state; whatever it raises, the state does not fit and the next attempt is built anew
    :param notify: shows one line
    :return: the state that has been restored, and how far the JSONL files had been written; None: there was none
    :raises UsageError: when a checkpoint is intact, but none fits the run and its rows; then nothing is changed
    """
    skipped: list[tuple[Path, str]] = []
    any_intact = False
    for path in available(folder / CHECKPOINTS):
        try:
            state, continues = read(path)
            any_intact = True
            problem = _rows_problem(folder, continues)
            if problem is None:
                build()
                problem = _attempt(restore, state)
        except CheckpointError as error:
            problem = str(error).removeprefix(f"checkpoint {path.name}: ")
        if problem is None:
            for other, why in skipped:
                notify(f"checkpoint {other.name} cannot be resumed ({why}); falling back to {path.name}")
                move_away(other)
            return state, continues
        skipped.append((path, problem))
    reasons = "; ".join(f"checkpoint {path.name}: {why}" for path, why in skipped)
    if any_intact:
        raise UsageError(f"{folder}: cannot resume: {reasons}; undo that, or train anew with force=true")
    build()
    if skipped:
        notify(f"no checkpoint is intact ({reasons}); starting anew, earlier rows go to {DISCARDED}")
        for path, _ in skipped:
            move_away(path)
    return None


def _rows_problem(folder: Path, continues: dict[str, Extent]) -> str | None:
    problems = (mismatch(folder / name, extent) for name, extent in continues.items())
    return next((problem for problem in problems if problem is not None), None)


def _attempt(restore: Callable[[dict[str, Any]], None], state: dict[str, Any]) -> str | None:
    try:
        restore(state)
    except Exception as error:  # a state that does not fit fails wherever it is first used, with any error
        first = (str(error).splitlines() or [""])[0]
        return first if isinstance(error, CheckpointError) else f"{type(error).__name__}: {first}"
    return None
