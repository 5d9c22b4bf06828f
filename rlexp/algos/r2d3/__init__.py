"""Recurrent replay with demonstrations."""
