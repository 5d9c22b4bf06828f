"""Trainable action mask."""

from rlexp.algos.tam.tam import TAM

__all__ = ["TAM"]
