"""How many gradient updates go with how many environment steps; without torch and without Ray."""

from __future__ import annotations

import math


class UpdateRatioLimiter:
    """Keeps the ratio of updates to steps, whichever side is faster.

    After ``learning_starts`` steps the learner may do ``ratio`` updates per step, and the actors may run ahead by
    ``slack`` steps in addition to those of the next update.

    :param ratio: updates per environment step; None: neither side waits
    :param learning_starts: steps before the first update
    :param slack: steps that the actors may run ahead
    :raises ValueError: when the ratio is not positive
    """

    def __init__(self, ratio: float | None, learning_starts: int, slack: int) -> None:
        if ratio is not None and ratio <= 0:
            raise ValueError(f"ratio: {ratio} given, must be greater than 0")
        self.ratio = ratio
        self.learning_starts = learning_starts
        self.slack = slack
        self._updates = 0

    def reset(self, learning_starts: int, updates: int) -> None:
        """Drop all pending updates.

        :param learning_starts: total steps after which learning continues
        :param updates: total updates so far
        """
        self.learning_starts, self._updates = learning_starts, updates

    def pending_updates(self, steps: int, updates: int) -> float:
        """Return how many updates the learner may do now; ``inf`` without a ratio.

        :param steps: of all actors together, since the beginning of the run
        :param updates: since the beginning of the run
        """
        if steps <= self.learning_starts:
            return 0
        if self.ratio is None:
            return math.inf
        # A step more or less of rounding must not cost an update.
        return max(
            0, math.floor((steps - self.learning_starts) * self.ratio + 1e-9) - (updates - self._updates)
        )

    def allowed_steps(self, steps: int, updates: int) -> float:
        """Return how many steps the actors may take now, including those in flight; ``inf`` without a ratio.

        :param steps: of all actors together, since the beginning of the run
        :param updates: since the beginning of the run
        """
        if self.ratio is None:
            return math.inf
        return self.learning_starts + (updates - self._updates + 1) / self.ratio + self.slack - steps
