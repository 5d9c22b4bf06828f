"""Policies that learn nothing, with the interface of those that do."""
