"""An installed distribution of toys, to show that plug-ins need one package and one YAML file and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(site: Path, group: str, files: Mapping[str, str] | None = None) -> dict[str, str]:
    """Write a distribution whose entry points name the package ``toys`` and its folder of configs.

    :param site: folder on the import path
    :param group: ``"rlexp.algos"`` or ``"rlexp.envs"``
    :param files: of one algorithm or environment, by path below ``toys/``; None: there is none
    :return: environment variables with which it is found
    """
    contents = {
        "toys-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: toys\nVersion: 1\n",
        "toys-1.dist-info/entry_points.txt": f"[{group}]\ntoys = toys\n\n[rlexp.conf]\ntoys = toys.conf\n",
        "toys/__init__.py": "",
        "toys/conf/__init__.py": "",
    }
    contents |= {f"toys/{name}": text for name, text in (files or {}).items()}
    for name, text in contents.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {"PYTHONPATH": str(site)}
