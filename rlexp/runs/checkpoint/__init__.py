"""Exact state: everything that a run needs to resume as if nothing had happened."""

from rlexp.runs.checkpoint.files import ARRAYS, CheckpointError, available, load, save
from rlexp.runs.checkpoint.resume import restore_newest
from rlexp.runs.checkpoint.state import capture, restore, restore_pending_metrics, restore_random_state

__all__ = [
    "ARRAYS",
    "CheckpointError",
    "available",
    "capture",
    "load",
    "restore",
    "restore_newest",
    "restore_pending_metrics",
    "restore_random_state",
    "save",
]
