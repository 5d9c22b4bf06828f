"""How long a run has taken."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass
class Clock:
    """Seconds spent, those of earlier attempts included."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    def __post_init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        """Return wall-clock and processor seconds until now."""
        return {
            "wall_s": round(self.wall_s + time.perf_counter() - self._wall, 3),
            "cpu_s": round(self.cpu_s + time.process_time() - self._cpu, 3),
        }
