"""Deep Q-learning from demonstrations."""

from rlexp.algos.dqfd.dqfd import DQfD

__all__ = ["DQfD"]
