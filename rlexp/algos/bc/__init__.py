"""Behaviour cloning."""

from rlexp.algos.bc.bc import BC

__all__ = ["BC"]
