"""Policies that learn nothing, behind the same ``predict`` as those that do."""

from rlexp.algos.controllers.controllers import Controller, RandomPolicy

__all__ = ["Controller", "RandomPolicy"]
