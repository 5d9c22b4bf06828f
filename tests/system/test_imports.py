"""Nothing is imported from where somebody else's files lie."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rlexp.errors import UsageError
from rlexp.reports.definition import Expected
from rlexp.sweep.execute import train_command
from rlexp.system import imports


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)


def test_what_leads_into_a_run_folder_is_taken_off_the_path(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "deeper").mkdir(parents=True)
    (tmp_path / "link").symlink_to("run")
    before = list(sys.path)
    sys.path[:0] = [str(run), "run/deeper", str(tmp_path / "link")]
    imports.exclude(run, "CartPole-v1")
    assert sys.path == before


def test_an_environment_that_lies_in_a_run_folder_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """``rlexp evaluate .`` in a folder that holds ``.venv``, too."""
    packages = tmp_path / ".venv" / "lib"
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    sys.path.append(str(packages))
    imports.exclude(tmp_path, None)
    assert str(packages) in sys.path


def test_no_process_that_is_started_imports_from_the_folder_it_starts_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    for name in ("json", "omegaconf", "hydra", "torch"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(7)\n")
    assert subprocess.run([sys.executable, "-c", "import json"]).returncode == 7
    imports.isolate_children()
    # As multiprocessing and joblib start theirs.
    assert subprocess.run([sys.executable, "-c", "import json"]).returncode == 0
    assert subprocess.run([sys.executable, "-m", "json.tool", "--help"], capture_output=True).returncode == 0
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    run = Expected("x", 0, tmp_path, ("algo=nope",), {})
    reported = subprocess.run(train_command(run), capture_output=True, text=True)
    assert reported.returncode == 2 and "'nope'" in reported.stderr


@pytest.mark.parametrize("module", ["antigravity", "os.path", "this"])
def test_a_config_names_no_module_of_pythons_own(module: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=module.partition(".")[0]):
        imports.exclude(tmp_path, f"{module}:X-v0")


@pytest.mark.parametrize(
    ("argument", "allowed"),
    [
        ("env.id=mine:X-v0", True),
        ("+env.id=mine:X-v0", True),
        ("env.id=CartPole-v1", False),
        ("name=mine:X", False),
        ("env=gym", False),
    ],
)
def test_the_current_folder_is_for_who_names_a_module(argument: str, allowed: bool, tmp_path: Path) -> None:
    imports.allow_current_folder(["algo=ppo", argument])
    assert (sys.path[-1] == str(tmp_path)) is allowed
    assert sys.path[0] != str(tmp_path)  # what is installed comes first
