"""What MkDocs calls while it builds the site: generated pages, and ``<!-- generate: KIND NAME -->`` in written ones.

One fact stands in one place. Settings, ranges and defaults come from the code and ``conf/``, result tables and figures
from ``outputs/reference``, the API reference from docstrings; none of them is committed as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from generate import api, catalogue, commands, results, settings, text
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from rlexp import registry

DIRECTIVE = re.compile(r"<!-- generate: (\w+) ?([\w./]*) -->")

KINDS: dict[str, Callable[..., str]] = {
    "algorithm": catalogue.algorithm_facts,
    "environment": catalogue.environment_facts,
    "choices": catalogue.choices,
    "algorithm_settings": settings.of_algorithm,
    "environment_settings": settings.of_environment,
    "group": catalogue.group,
    "tuned_ids": catalogue.tuned_ids,
    "experiments": catalogue.experiments,
    "sweeps": catalogue.sweeps,
    "layers": catalogue.layers,
    "contracts": catalogue.contracts,
    "file": results.committed,
    "picture": results.picture,
}

_REPORTS = ("report", "curves")
_pages: dict[str, str] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages that are generated, or listed by what there is, to the navigation."""
    folder = Path(config.docs_dir)
    # The offline plugin would load one from elsewhere.
    config.extra["polyfills"] = ["assets/local-worker.js"]
    _pages.clear()
    _pages.update({f"api/{name}.md": page for name, page in api.pages().items()})
    _pages["reference/commands.md"] = commands.reference()
    for kind, place, build in (("algos", "algorithms", _algorithm), ("envs", "environments", _environment)):
        for package, names in catalogue.packages(kind).items():
            if not (folder / place / f"{package}.md").is_file():
                _pages[f"{place}/{package}.md"] = build(names)
    listed = {
        "Algorithms": [f"algorithms/{name}.md" for name in catalogue.packages("algos")],
        "Environments": [f"environments/{name}.md" for name in catalogue.packages("envs")],
        "API": [{f"rlexp.{name}": f"api/{name}.md"} for name in api.pages()],
    }
    for section in config.nav or []:
        for title, items in section.items():
            if title in listed:
                items += listed[title]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and the results and figures that pages ask for."""
    for path, content in _pages.items():
        files.append(File.generated(config, path, content=content))
    asked = {
        file.src_uri: DIRECTIVE.findall(file.content_string) for file in list(files.documentation_pages())
    }
    results.prepare(name for found in asked.values() for kind, name in found if kind in _REPORTS)
    for page, found in asked.items():
        for kind, name in found:
            pictures = results.report(name)[1] if kind in _REPORTS else {}
            if kind == "picture":
                pictures = {Path(name).name: results.REFERENCE / name}
            for picture, source in pictures.items():
                uri = f"{Path(page).parent.as_posix()}/figures/{picture}"
                if files.get_file_from_path(uri) is None:
                    files.append(File.generated(config, uri, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Replace what stands for generated text."""

    def generated(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind == "report":
            return results.report(name)[0]
        if kind == "curves":
            return f"![Learning curves](figures/{name}.svg)"
        return KINDS[kind](name) if name else KINDS[kind]()

    return DIRECTIVE.sub(generated, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Draw the formulas."""
    return text.render_formulas(html)


def _algorithm(names: list[str]) -> str:
    """Return the page of an algorithm for which none is written."""
    parts = [f"# {registry.algo(names[0]).summary}", ""]
    for name in names:
        parts += [f"## {name}", "", f"<!-- generate: algorithm {name} -->", ""]
        parts += [f"<!-- generate: algorithm_settings {name} -->", ""]
    return "\n".join(parts)


def _environment(names: list[str]) -> str:
    """Return the page of an environment for which none is written."""
    parts = [f"# {registry.env(names[0]).summary}", ""]
    for name in names:
        parts += [f"## {name}", "", f"<!-- generate: environment {name} -->", ""]
        parts += [f"<!-- generate: environment_settings {name} -->", ""]
    return "\n".join(parts)
