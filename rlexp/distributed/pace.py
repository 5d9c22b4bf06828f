"""How many updates go with how many steps; without torch and without Ray."""

from __future__ import annotations

import math


class Pace:
    """Keeps updates and steps together, whichever side is the faster one.

    Learning begins after ``begin`` steps. From then on the learner may do ``ratio`` updates per step, and actors may be
    ahead of it by ``slack`` steps beside those of the next update.

    :param ratio: updates per step; None: nobody waits for anybody
    :param begin: steps before the first update
    :param slack: steps
    """

    def __init__(self, ratio: float | None, begin: int, slack: int) -> None:
        if ratio is not None and ratio <= 0:
            raise ValueError(f"ratio: {ratio} given, must be greater than 0")
        self.ratio = ratio
        self.begin = begin
        self.slack = slack
        self._updates = 0

    def begin_anew(self, begin: int, updates: int) -> None:
        """Forget what is owed: learning goes on after ``begin`` steps, ``updates`` having been done."""
        self.begin, self._updates = begin, updates

    def owed(self, steps: int, updates: int) -> float:
        """Return how many updates the learner may do now.

        :param steps: of all actors together, since the beginning of the run
        :param updates: likewise
        """
        if steps <= self.begin:
            return 0
        if self.ratio is None:
            return math.inf
        # A step more or less of rounding must not cost an update.
        return max(0, math.floor((steps - self.begin) * self.ratio + 1e-9) - (updates - self._updates))

    def room(self, steps: int, updates: int) -> float:
        """Return how many steps the actors may take now, those under way included."""
        if self.ratio is None:
            return math.inf
        return self.begin + (updates - self._updates + 1) / self.ratio + self.slack - steps
