"""Equations: tensors in, tensors out; no gymnasium, no Stable-Baselines3, no logging.

``distributions`` and ``huber`` hold what several algorithms share; the other modules are named after their algorithm.
"""
