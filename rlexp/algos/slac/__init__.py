"""Stochastic latent actor-critic."""
