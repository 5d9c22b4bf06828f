"""What happens around training: counting, measuring, keeping, showing, stopping."""

from rlexp.callbacks.budget import Budget
from rlexp.callbacks.evaluate import Evaluate
from rlexp.callbacks.keep import Keep
from rlexp.callbacks.periods import Periods
from rlexp.callbacks.progress import Progress

__all__ = ["Budget", "Evaluate", "Keep", "Periods", "Progress"]
