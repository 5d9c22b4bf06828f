"""Policies that learn nothing, behind the same ``predict`` as those that do."""
