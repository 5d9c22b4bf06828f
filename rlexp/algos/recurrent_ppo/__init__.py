"""PPO with an LSTM: sb3-contrib's, and the shared network of Stable-Baselines 2."""
