"""The examples are those that the guides show, and the notebook runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_documented_commands import TOP, files_shown

_EXAMPLES = TOP / "examples"


def test_files_are_those_that_the_guides_show() -> None:
    shown = dict(files_shown())
    assert {"corridor.py", "cartpole.yaml"} <= set(shown)
    for name, content in shown.items():
        assert (_EXAMPLES / name).read_text(encoding="utf-8") == content, name


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", str(TOP))
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = nbformat.read(_EXAMPLES / "quickstart.ipynb", as_version=4)
    assert len(notebook.cells) <= 15
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert not list(tmp_path.iterdir()), "left something in the current folder"
