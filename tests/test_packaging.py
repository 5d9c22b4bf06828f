"""An installed wheel brings its configs and data, and is found from any folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

_TOP = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files, as an installation would lay them out."""
    folder = tmp_path_factory.mktemp("wheel")
    arguments = [
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--quiet",
        "--wheel-dir",
        str(folder),
        str(_TOP),
    ]
    subprocess.run([sys.executable, "-m", "pip", *arguments], check=True, capture_output=True)
    (wheel,) = folder.glob("rlexp-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_configs_sweeps_and_data_are_inside(installed: Path) -> None:
    inside = (
        "conf/config.yaml",
        "conf/algo/lcpo.yaml",
        "sweeps/table1.yaml",
        "envs/restaurant/data/restaurants.db",
    )
    for path in inside:
        assert (installed / "rlexp" / path).is_file(), path


def test_works_from_any_folder(installed: Path, tmp_path: Path) -> None:
    # The wheel's folder stands before the checkout, which an editable installation adds at the end of the path.
    probe = "import sys; sys.path.insert(0, sys.argv.pop(1)); import rlexp.cli; print(rlexp.cli.__file__)"
    probe += "; sys.exit(rlexp.cli.main())"
    arguments = [sys.executable, "-c", probe, str(installed), "algo=lcpo", "env=restaurant", "--cfg", "job"]
    result = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(str(installed)) and "clip_gae: true" in result.stdout
