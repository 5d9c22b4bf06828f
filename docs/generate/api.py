"""The API reference: public classes and functions of every package, read by griffe without importing them."""

from __future__ import annotations

from collections.abc import Iterator

import griffe

from generate import text
from generate.catalogue import TOP

_PARSER = griffe.Parser.sphinx


def pages() -> dict[str, str]:
    """Return one page per package, Markdown by name."""
    package = griffe.load("rlexp", search_paths=[TOP], docstring_parser=_PARSER, allow_inspection=False)
    found: dict[str, str] = {}
    for name, member in sorted(package.modules.items()):
        if not name.startswith("_"):
            found[name] = "\n".join([f"# rlexp.{name}", "", *_module(member)])
    return found


def _module(module: griffe.Module) -> Iterator[str]:
    yield from (_doc(module), "")
    for inside in _submodules(module):
        public = [one for one in inside.members.values() if _is_public(one, inside)]
        if not public:
            continue
        if inside is not module:
            yield from (f"## {inside.path}", "", _doc(inside), "")
        for one in public:
            yield from _entry(one)


def _submodules(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for name, inside in sorted(module.modules.items()):
        if not name.startswith("_") and not inside.is_alias:  # an import of another module is one
            yield from _submodules(inside)


def _is_public(one: griffe.Object | griffe.Alias, module: griffe.Module) -> bool:
    return (
        not one.is_alias and one.name[0] != "_" and (one.is_class or one.is_function) and one.parent is module
    )


def _entry(one: griffe.Object | griffe.Alias) -> Iterator[str]:
    if isinstance(one, griffe.Class):
        yield from (f"### {one.name} {{ #{one.path} .class }}", "")
        initializer = one.members.get("__init__")
        shown = initializer if isinstance(initializer, griffe.Function) else None
        if one.name.endswith("Config"):  # its fields are the settings, with their own tables
            shown = None
        bases = ", ".join(str(base) for base in one.bases)
        yield from ("```python", f"class {one.name}({bases}){_init(shown)}", "```", "")
        yield from _docstring(one)
        for method in one.members.values():
            if isinstance(method, griffe.Function) and not method.name.startswith("_") and method.docstring:
                yield from (f"#### {one.name}.{method.name} {{ #{method.path} }}", "")
                yield from ("```python", _signature(method), "```", "")
                yield from _docstring(method)
    elif isinstance(one, griffe.Function):
        yield from (
            f"### {one.name} {{ #{one.path} .function }}",
            "",
            "```python",
            _signature(one),
            "```",
            "",
        )
        yield from _docstring(one)


def _init(function: griffe.Function | None) -> str:
    return "" if function is None else "\n\n" + _signature(function)


def _signature(function: griffe.Function) -> str:
    parts: list[str] = []
    star = False
    for parameter in function.parameters:
        kind = parameter.kind
        if kind is griffe.ParameterKind.keyword_only and not star:
            parts.append("*")
            star = True
        prefix = (
            {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(kind, "")
            if kind
            else ""
        )
        star = star or prefix == "*"
        said = prefix + parameter.name + (f": {parameter.annotation}" if parameter.annotation else "")
        if parameter.default is not None and not prefix:
            said += f" = {parameter.default}"
        parts.append(said)
    result = f" -> {function.returns}" if function.returns else ""
    line = f"def {function.name}({', '.join(parts)}){result}"
    if len(line) <= 100:
        return line
    return f"def {function.name}(\n    " + ",\n    ".join(parts) + f",\n){result}"


def _docstring(one: griffe.Object) -> Iterator[str]:
    source = one.docstring.value if one.docstring else ""
    yield from (text.summary(source), "")
    if found := text.parameters(source):
        yield from (f"* `{name}`: {meaning}" for name, meaning in found.items())
        yield ""
    for word, said in text.outcomes(source):
        yield from (f"*{word}* {said}", "")


def _doc(one: griffe.Object) -> str:
    return text.summary(one.docstring.value) if one.docstring else ""
