"""Fixtures that the studies share with the environments and the reports."""

from tests.envs.restaurant.conftest import real_files
from tests.reports.conftest import place

__all__ = ["place", "real_files"]
