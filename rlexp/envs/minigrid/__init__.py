"""``env=minigrid``: MiniGrid and BabyAI tasks (package ``minigrid``, Apache licence), seen through a 7×7 window."""
