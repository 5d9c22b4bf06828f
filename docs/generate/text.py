"""Markdown from the pieces that the other modules find: tables, docstrings, formulas."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from latex2mathml.converter import convert


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; line breaks and bars inside of cells are escaped."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    for row in rows:
        cells = (" ".join(cell.split()).replace("|", "\\|") for cell in row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def folded(title: str, text: str, kind: str = "note") -> str:
    """Return text that the reader opens with a click."""
    inside = "\n".join(f"    {line}" if line else "" for line in text.splitlines())
    return f'??? {kind} "{title}"\n\n{inside}\n'


def from_rst(text: str) -> str:
    """Turn the reStructuredText of a docstring into Markdown: roles, literals, links, literal blocks."""
    text = re.sub(r":(?:class|func|meth|mod|data|attr|obj):`~?([^`<]+?)(?: <[^`]*>)?`", _target, text)
    text = re.sub(r"`([^`<]+?)\s*<([^`>]+)>`__?", r"[\1](\2)", text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    lines: list[str] = []
    block = False
    for line in text.splitlines():
        if block and line and not line.startswith(" "):
            lines += ["```", ""]
            block = False
        if line.endswith("::") and not block:
            lines += [line[:-1] if line != "::" else "", "", "```text"]
            block = True
            continue
        lines.append(line)
    if block:
        lines.append("```")
    return re.sub(r"```text\n+", "```text\n", "\n".join(lines))


def _target(match: re.Match[str]) -> str:
    name = match[1]
    return "`" + (name.rpartition(".")[2] if "~" in match[0] or name.count(".") > 1 else name) + "`"


def parameters(docstring: str | None) -> dict[str, str]:
    """Return what every ``:param name:`` of a docstring says, in one line each."""
    found: dict[str, str] = {}
    parts = re.split(r"^[ \t]*:(param|return|returns|raises)\b([^:]*):", docstring or "", flags=re.MULTILINE)
    for kind, name, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        if kind == "param":
            paragraph = re.split(r"\n\s*\n", text)[0]
            found[name.split()[-1]] = " ".join(from_rst(paragraph).split())
    return found


def summary(docstring: str | None) -> str:
    """Return what a docstring says before its parameters."""
    text = re.split(r"^\s*:(?:param|return|raises)", docstring or "", maxsplit=1, flags=re.MULTILINE)[0]
    return from_rst(text.strip())


def render_formulas(page: str) -> str:
    """Replace what the arithmatex extension has marked by MathML, which browsers draw without any script."""

    def replaced(match: re.Match[str]) -> str:
        latex = html.unescape(match["latex"]).strip()
        block = match["tag"] == "div"
        formula = convert(latex, display="block" if block else "inline")
        return f'<div class="formula">{formula}</div>' if block else formula

    pattern = r'<(?P<tag>div|span) class="arithmatex">\\[\[(](?P<latex>.*?)\\[\])]</(?P=tag)>'
    return re.sub(pattern, replaced, page, flags=re.DOTALL)


def outcomes(docstring: str) -> list[tuple[str, str]]:
    """Return what a docstring says of what is returned and raised."""
    found = []
    for kind, name, said in re.findall(
        r"^[ \t]*:(return|returns|raises)\b([^:]*):((?:.|\n(?![ \t]*:|\s*\n))*)",
        docstring,
        flags=re.MULTILINE,
    ):
        word = f"Raises `{name.strip()}`:" if kind == "raises" else "Returns:"
        found.append((word, " ".join(from_rst(said).split())))
    return found
