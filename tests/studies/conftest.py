"""Fixtures that the studies share with the environments."""

from tests.envs.restaurant.conftest import real_files

__all__ = ["real_files"]
