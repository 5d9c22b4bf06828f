"""Stochastic latent actor-critic."""

from rlexp.algos.slac.slac import SLAC

__all__ = ["SLAC"]
