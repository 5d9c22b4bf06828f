"""Callbacks of a run: episode budget, evaluation, checkpoints, trackers of environments, progress."""

from rlexp.runs.callbacks.budget import Budget
from rlexp.runs.callbacks.checkpoint import Checkpoint
from rlexp.runs.callbacks.evaluate import Evaluate
from rlexp.runs.callbacks.progress import Progress
from rlexp.runs.callbacks.restore_noise import RestoreNoise
from rlexp.runs.callbacks.track import Track, Tracker

__all__ = ["Budget", "Checkpoint", "Evaluate", "Progress", "RestoreNoise", "Track", "Tracker"]
