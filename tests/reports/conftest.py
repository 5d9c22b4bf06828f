"""Fixtures: sweep files of their own and run folders made of chosen numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlexp.reports import sweep_file
from tests.reports.synthetic import Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    here = Place(tmp_path)
    monkeypatch.setattr(sweep_file, "sweeps_dir", lambda: here.sweeps)
    return here
