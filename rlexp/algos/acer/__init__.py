"""Actor-critic with experience replay."""

from rlexp.algos.acer.acer import ACER, MaskableACER

__all__ = ["ACER", "MaskableACER"]
