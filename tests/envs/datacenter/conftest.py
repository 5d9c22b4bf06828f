"""Shared by the data centre's tests: what needs the engine is left out where it is not installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture
def engine_installed() -> None:
    """Leave a test out where the engine or its building cannot be had."""
    for package in ("pyenergyplus", "sinergym"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder
