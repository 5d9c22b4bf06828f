"""Recurrent replay with demonstrations."""

from rlexp.algos.r2d3.r2d3 import R2D3

__all__ = ["R2D3"]
