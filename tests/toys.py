"""An installed distribution of toys, to show that plug-ins need one package and one YAML file and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(site: Path, group: str) -> dict[str, str]:
    """Write a distribution whose entry points name the package ``toys`` and its folder of configs.

    :param site: folder on the import path
    :param group: ``"rlexp.algos"`` or ``"rlexp.envs"``
    :return: environment variables with which it is found
    """
    write(
        site,
        {
            "toys-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: toys\nVersion: 1\n",
            "toys-1.dist-info/entry_points.txt": f"[{group}]\ntoys = toys\n\n[rlexp.conf]\ntoys = toys.conf\n",
            "toys/__init__.py": "",
            "toys/conf/__init__.py": "",
        },
    )
    return {"PYTHONPATH": str(site)}


def write(site: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder.

    :param site: the folder
    :param files: contents by path
    """
    for name, text in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
