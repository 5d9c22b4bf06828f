"""Recurrent replay: R2D2, and the parts that R2D3 and behaviour cloning share with it."""

from rlexp.algos.r2d2.r2d2 import R2D2

__all__ = ["R2D2"]
