"""Deep Q-networks with prioritized replay."""
