"""Wrappers and vectorisation for any environment."""
