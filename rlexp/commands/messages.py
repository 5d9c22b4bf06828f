"""What commands say of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlexp import record
from rlexp.terminal import inert


def summary(row: dict[str, Any]) -> str:
    """Return the final numbers as one line."""
    if not row:
        return "no evaluation was asked for"
    if row.get("success_rate") is None:
        return f"return {row['return_mean']:.2f} ± {row['return_std']:.2f} over {row['n']} episodes"
    turns = f", {row['system_turns_mean']:.1f} turns" if row.get("system_turns_mean") is not None else ""
    return f"success rate {row['success_rate']:.1%}{turns}, return {row['return_mean']:.2f} over {row['n']} episodes"


def finished_line(folder: Path) -> str | None:
    """Return what is said of a run that is finished, None of any other."""
    if not (folder / record.RECORD).exists():
        return None
    entry = record.read_record(folder)
    if entry["status"] != "finished":
        return None
    return f"already finished: {summary(entry.get('evaluation') or {})}\n{inert(folder)}\nforce=true trains it anew"


def short(path: Path) -> str:
    """Return a path as it is shown: relative to the current folder where it lies below it."""
    here = Path.cwd()
    return inert(path.relative_to(here) if path.is_relative_to(here) else path)
