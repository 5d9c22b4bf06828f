"""Equations: arrays or tensors in, arrays or tensors out. Nothing here knows an environment or a logger."""
