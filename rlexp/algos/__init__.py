"""The algorithms, side by side: Stable-Baselines3 citizens that never import one another."""
