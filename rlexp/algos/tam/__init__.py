"""Trainable action mask."""
