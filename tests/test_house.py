"""Rules that hold for the whole code base."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from rlexp.cli.catalogue import COMMANDS

_TOP = Path(__file__).resolve().parent.parent
_SOURCES = sorted((_TOP / "rlexp").rglob("*.py"))


@pytest.mark.parametrize("path", _SOURCES, ids=lambda path: str(path.relative_to(_TOP)))
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 450


@pytest.mark.parametrize("package", ["losses", "reports", "studies"])
def test_public_functions_document_every_parameter(package: str) -> None:
    for path in sorted((_TOP / "rlexp" / package).glob("*.py")):
        top = ast.parse(path.read_text()).body
        classes = [node for node in top if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
        for function in [*top, *(member for one in classes for member in one.body)]:
            if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
                described = ast.get_docstring(function) or ""
                names = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
                missing = [name for name in names - {"self", "cls"} if f":param {name}:" not in described]
                assert not missing, f"{path.name}: {function.name}"


def test_nothing_is_unpickled() -> None:
    risky = re.compile(
        r"\bpickle\.load|\bcloudpickle\b|allow_pickle=True|weights_only=False|yaml\.unsafe_load"
    )
    in_memory = (
        "pickle.loads(pickle.dumps("  # asks whether an object of ours can be copied; nothing is read back
    )
    found = [
        f"{path.name}: {line}"
        for path in _SOURCES
        for line in path.read_text().splitlines()
        if risky.search(line.replace(in_memory, ""))
    ]
    assert not found


def contracts() -> dict[str, dict[str, object]]:
    project = tomllib.loads((_TOP / "pyproject.toml").read_text())
    return {contract["name"]: contract for contract in project["tool"]["importlinter"]["contracts"]}


def test_every_package_is_in_the_layered_contract() -> None:
    layers = contracts()["Modules import only from lower layers"]["layers"]
    assert isinstance(layers, list)
    listed = {name.strip() for layer in layers for name in layer.split("|")}
    below = (path for path in (_TOP / "rlexp").iterdir() if not path.name.startswith("_"))
    found = {
        f"rlexp.{path.stem}" for path in below if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert listed == found


def test_every_command_is_kept_apart_from_the_others() -> None:
    apart = contracts()["Commands never import one another"]["modules"]
    assert apart == [f"rlexp.cli.{command}" for command in sorted(COMMANDS)]


def test_every_make_target_is_explained() -> None:
    makefile = (_TOP / "Makefile").read_text()
    targets = re.findall(r"^([a-z0-9-]+):", makefile, flags=re.MULTILINE)
    shown = subprocess.run(
        ["make", "-s", "help"], cwd=_TOP, capture_output=True, text=True, check=True
    ).stdout
    for target in targets:
        assert f"make {target} " in shown, target
