"""What docstrings say of classes and functions, read from their sources: nothing is imported, torch least of all."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_FIELD = re.compile(r"^\s*:(param|return|returns|raises|rtype|type)\b\s*([^:]*):", flags=re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?([^`<]+?)(?:\s*<[^`]*>)?`")


@dataclass(frozen=True)
class Documented:
    """A class or function and what is written about it.

    :param module: docstring of its module, empty where it has none
    :param text: its own docstring, parameters left out
    :param parameters: meaning by name; those of base classes included
    """

    module: str
    text: str
    parameters: dict[str, str]


def read(target: str) -> Documented:
    """Read what is written about ``"module:attribute"``, wherever that module has it from; empty where no source is."""
    module, _, name = target.partition(":")
    found = _find(module, name)
    if found is None:
        return Documented("", "", {})
    at, node = found
    docstring = inspect.cleandoc(ast.get_docstring(node) or "")
    own = ast.get_docstring(_tree(at)) or ""
    return Documented(_plain(own), _plain(_FIELD.split(docstring)[0]), _parameters(at, node))


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, one line each."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def _parameters(module: str, node: ast.ClassDef | ast.FunctionDef) -> dict[str, str]:
    parts = _FIELD.split(ast.get_docstring(node) or "")
    found: dict[str, str] = {}
    for kind, name, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        if kind == "param":
            found[name.strip()] = (paragraphs(_plain(text)) or [""])[0]
    for base in node.bases if isinstance(node, ast.ClassDef) else []:
        above = _find(module, base.id) if isinstance(base, ast.Name) else None
        if above is not None:
            found = {**_parameters(*above), **found}
    return found


def _find(module: str, name: str) -> tuple[str, ast.ClassDef | ast.FunctionDef] | None:
    """Return the module that defines a name which another one may only import, and the definition."""
    tree = _tree(module)
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return module, node
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module not in (None, module):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _find(str(node.module), alias.name)
    return None


@cache
def _tree(module: str) -> ast.Module:
    first, *rest = module.split(".")
    spec = find_spec(first)  # of a top-level package: imports nothing
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        path = Path(folder).joinpath(*rest)
        for file in (path.with_suffix(".py") if rest else path / "__init__.py", path / "__init__.py"):
            if file.is_file():
                return ast.parse(file.read_text(encoding="utf-8"))
    return ast.parse("")


def _plain(text: str) -> str:
    """Return reStructuredText as it is read in a terminal."""
    text = _ROLE.sub(lambda match: match[1].rpartition(".")[2] if "~" in match[0] else match[1], text)
    return text.replace("``", "").strip()
