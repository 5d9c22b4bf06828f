"""Deep Q-networks with prioritized replay."""

from rlexp.algos.dqn.dqn import DQN

__all__ = ["DQN"]
