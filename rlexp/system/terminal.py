"""What is printed: text that comes from files stays text, whatever it holds."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST = 800  # characters of a message that may quote whatever was typed
_REDRAW_SECONDS = 0.25
_QUIET_SECONDS = 15.0  # between two lines where there is no terminal
_WIDE = 160  # columns where there is no terminal that says how wide it is


def inert(value: Any) -> str:
    """Return a text in which no character steers a terminal: escape sequences, direction marks and such are spelt out.

    Line feeds and tabs stay.
    """
    return "".join(
        character if character in "\n\t" or not _steers(character) else _spelt(character)
        for character in str(value)
    )


def one_line(value: Any) -> str:
    """Return :func:`inert` text in one line; of a very long one, its beginning and its end."""
    text = " ".join(inert(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST * 2 // 3]} ... {text[-_LONGEST // 4 :]}"


def console(width: int | None = _WIDE, soft_wrap: bool = False, quiet: bool = False) -> Console:
    """Return a console that shows texts as they are: no markup, no emoji, and :func:`inert`.

    :param width: columns where there is no terminal; None: what rich takes then
    :param soft_wrap: leave long lines to the terminal
    :param quiet: print nothing at all
    """
    from rich.console import Console
    from rich.text import Text

    class Inert(Console):
        def render_str(self, text: str, **more: Any) -> Text:
            return super().render_str(inert(text), **more)

    found = Inert(highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap, quiet=quiet)
    if not found.is_terminal:
        found = Inert(
            highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap, quiet=quiet, width=width
        )
    return found


State = Callable[[], tuple[int, str]]  # how many are done, and a note beside it


@contextmanager
def progress(console: Console, what: str, total: int | None, state: State) -> Iterator[Callable[[], None]]:
    """Show progress as a bar on a terminal, as a line every 15 seconds elsewhere.

    The block calls what it is given whenever something has changed; most of these calls cost no more than a look at
    the clock.

    :param what: is counted, e.g. ``"episodes"``
    :param total: how many there will be
    :param state: asked only when it is to be shown
    """
    last = time.monotonic()

    def is_due(seconds: float) -> bool:
        nonlocal last
        now = time.monotonic()
        if now - last < seconds:
            return False
        last = now
        return True

    if not console.is_terminal:
        first, began = state()[0], last

        def say() -> None:
            if is_due(_QUIET_SECONDS):
                done, note = state()
                left = ""
                if total is not None and done > first:
                    seconds = round(max(total - done, 0) * (last - began) / (done - first))
                    left = f"eta {timedelta(seconds=seconds)}"
                parts = (f"{done}/{total} {what}", note, left)
                console.print("  ".join(part for part in parts if part), highlight=False)

        yield say
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("eta"),
        TimeRemainingColumn(),
        console=console,
        refresh_per_second=1 / _REDRAW_SECONDS,
    )
    task = bar.add_task(what, total=total, completed=state()[0], note="")

    def draw() -> None:
        done, note = state()
        bar.update(task, completed=done, note=note)

    with bar:
        try:
            yield lambda: draw() if is_due(_REDRAW_SECONDS) else None
        finally:
            draw()


def _steers(character: str) -> bool:
    # Cc: control, Cf: direction marks and other invisible ones, Cs: lone surrogates, Zl, Zp: line separators.
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _spelt(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
