"""joblib's workers live as long as their multirun."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import joblib
import pytest

from rlexp.sweep import workers


def test_workers_do_not_stay_in_the_folder_of_an_earlier_multirun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        with workers.stopped_with_this_process():
            found = joblib.Parallel(n_jobs=2)(joblib.delayed(os.getcwd)() for _ in range(2))
        assert found == [str(folder)] * 2
        assert multiprocessing.active_children() == []
