"""Text that comes from files is shown as text."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

import pytest
from rich.console import Console

import rlexp
from rlexp.system import terminal


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\rb\x08", "a\\rb\\x08"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\ud800", "\\ud800"),
        ("two\nlines\tand ünïcödé ± 日本", "two\nlines\tand ünïcödé ± 日本"),
    ],
)
def test_nothing_steers_the_terminal(text: str, shown: str) -> None:
    assert terminal.inert(text) == shown


def test_a_console_shows_brackets_and_colons(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.table import Table

    table = Table("[bold]", title="[link=x]")
    table.add_row("[/red] :smile: \x1b[31m")
    console = terminal.console()
    console.print(table)
    console.print("[/nothing]")
    out = capsys.readouterr().out
    assert all(text in out for text in ("[bold]", "[link=x]", "[/red] :smile: \\x1b[31m", "[/nothing]"))


def test_there_is_no_other_console() -> None:
    package = Path(rlexp.__file__).parent
    made = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"(?<!\w)Console\(", path.read_text())
    ]
    assert made == []


def test_a_very_long_line_keeps_its_beginning_and_its_end() -> None:
    line = terminal.one_line("seed: '" + "x" * 100_000 + "' given, must be at least 0")
    assert len(line) < 1000 and line.startswith("seed: 'xxx") and line.endswith("must be at least 0")
    assert terminal.one_line("a\nb" * 100) == " ".join(["a", *["ba"] * 99, "b"])


def test_progress_is_a_bar_on_a_terminal_and_ends_with_the_last_state() -> None:
    stream = io.StringIO()
    done = 0
    with terminal.progress(
        Console(file=stream, force_terminal=True, width=120),
        "episodes",
        7,
        lambda: (done, f"{done * 10} steps"),
    ) as changed:
        done = 7
        changed()
    assert "episodes" in stream.getvalue() and "7/7" in stream.getvalue() and "70 steps" in stream.getvalue()


def test_progress_is_a_line_now_and_then_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    seconds = iter([0.0, 1.0, 15.0, 16.0, 30.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    asked = []

    def state() -> tuple[int, str]:
        asked.append(1)
        return len(asked), ""

    with terminal.progress(Console(file=stream), "steps", 40, state) as changed:
        for _ in range(4):
            changed()
    assert stream.getvalue().splitlines() == ["2/40 steps  eta 0:09:30", "3/40 steps  eta 0:09:15"]


def test_what_goes_past_its_budget_has_no_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a last rollout does."""
    stream, seconds, done = io.StringIO(), iter([0.0, 20.0]), iter([0, 44])
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    with terminal.progress(Console(file=stream), "steps", 40, lambda: (next(done), "")) as changed:
        changed()
    assert stream.getvalue() == "44/40 steps  eta 0:00:00\n"
