"""Actor-critic with experience replay."""

from rlexp.algos.acer.acer import ACER

__all__ = ["ACER"]
