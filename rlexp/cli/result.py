"""What is shown at the end of a run."""

from __future__ import annotations

from pathlib import Path

from rlexp.runs.messages import quoted
from rlexp.system import terminal


def show_result(folder: Path) -> None:
    """Print the learning curve of a run, its folder, and what can be done with it."""
    from rlexp.reports import learning_curve

    console = terminal.console(width=None, soft_wrap=True)
    learning_curve.show(folder, console)
    console.print(f"run folder    {quoted(folder)}")
    console.print(
        f"look closer   rlexp evaluate {quoted(folder)}\n              rlexp report run {quoted(folder)}"
    )
