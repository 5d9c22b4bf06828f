"""Soft actor-critic with LSTMs."""
