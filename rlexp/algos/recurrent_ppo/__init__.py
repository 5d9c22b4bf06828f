"""PPO with an LSTM: sb3-contrib's, and the shared network of Stable-Baselines 2."""

from rlexp.algos.recurrent_ppo.recurrent_ppo import RecurrentPPO

__all__ = ["RecurrentPPO"]
