"""Replay: priority structures (pure, without torch) and the buffers on top of them."""
