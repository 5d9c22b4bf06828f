"""The months of a data centre's year: a row each in training, the first year in the record, the mean in evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlexp.envs.datacenter.spec import METRICS


class Months:
    """Collects ``info["period"]``, the means of a month, which :class:`~rlexp.envs.datacenter.env.DataCenterEnv` gives
    as the month ends.
    """

    def __init__(self) -> None:
        self._first: list[dict[str, Any]] = []  # months of the first year of the first environment
        self._first_year: dict[str, Any] | None = None  # once it is over

    def step(self, env: int, info: Mapping[str, Any], done: bool) -> dict[str, Any] | None:
        """Return the means of the month that has ended, None when none has."""
        month: dict[str, Any] | None = info.get("period")
        if env == 0 and self._first_year is None:
            if month is not None:
                self._first.append(month)
            if done:
                means = {key: info[key] for key in METRICS if key in info}
                self._first_year = {**means, "periods": self._first}
        return month

    def record(self) -> dict[str, Any]:
        """Return the first year of training: its means, and those of its months."""
        return {"first_episode": self._first_year}

    @staticmethod
    def evaluation(episodes: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
        """Return the mean over years of every month, as far as all of them go."""
        years = [[info["period"] for info in infos if "period" in info] for infos in episodes]
        months = [
            {key: float(np.mean([month[key] for month in same])) for key in same[0]}
            for same in zip(*(year for year in years if year), strict=False)
        ]
        return {"periods": months} if months else {}

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint must keep."""
        return {"first": self._first, "first_episode": self._first_year}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what :meth:`state` returned."""
        self._first, self._first_year = list(state["first"]), state["first_episode"]
