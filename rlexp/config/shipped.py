"""Where the YAML files lie that come with rlexp; a separate module, because ``rlexp --help`` needs nothing else."""

from __future__ import annotations

from pathlib import Path


def conf_dir() -> Path:
    """Return the folder of the YAML files: inside an installed wheel, else at the top of the checkout."""
    return _shipped("conf")


def tuned_ids() -> dict[str, list[str]]:
    """Return the algorithms that have settings for a gymnasium environment, by its id."""
    found: dict[str, list[str]] = {}
    for path in sorted((conf_dir() / "tuned" / "gym").glob("*/*.yaml")):
        found.setdefault(path.parent.name, []).append(path.stem)
    return found


def sweeps_dir() -> Path:
    """Return the folder of the sweep files: inside an installed wheel, else at the top of the checkout."""
    return _shipped("sweeps")


def _shipped(name: str) -> Path:
    package = Path(__file__).resolve().parent.parent
    inside = package / name
    return inside if inside.is_dir() else package.parent / name
