"""The pages: their Python runs, and what is generated for them comes from the code."""

from __future__ import annotations

import dataclasses
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from rlexp import registry
from tests.test_documented_commands import NOT_RUN, PAGES, TOP, files_shown

_DOCS = TOP / "docs"


def _python(path: Path) -> str:
    """The blocks of Python of a page that are not files of their own."""
    text = re.sub(NOT_RUN, "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


@pytest.mark.parametrize(
    "path", [path for path in PAGES if _python(path)], ids=lambda path: str(path.relative_to(_DOCS))
)
def test_python_on_a_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, content in files_shown():
        (tmp_path / name).write_text(content, encoding="utf-8")
    module = ModuleType("__page__")  # dataclasses look their module up
    monkeypatch.setitem(sys.modules, "__page__", module)
    exec(compile(_python(path), str(path), "exec"), vars(module))


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("latex2mathml")
    monkeypatch.syspath_prepend(str(_DOCS))
    import generate.catalogue
    import generate.settings
    import generate.text

    return generate


@pytest.mark.parametrize("name", [spec.name for spec in registry.algos().values() if spec.trains])
def test_every_setting_of_an_algorithm_is_explained(generate: ModuleType, name: str) -> None:
    config = registry.algo(name).config
    assert config is not None
    _check(generate.settings.of_algorithm(name), config, "algo")


@pytest.mark.parametrize("name", list(registry.envs()))
def test_every_setting_of_an_environment_is_explained(generate: ModuleType, name: str) -> None:
    config = registry.env(name).config
    assert config is not None
    _check(generate.settings.of_environment(name), config, "env")


def _check(table: str, config: type, group: str) -> None:
    rows = {line.split("`")[1]: line for line in table.splitlines()[2:]}
    assert set(rows) == {f"{group}.{field.name}" for field in dataclasses.fields(config)} - {f"{group}.name"}
    for key, row in rows.items():
        meaning = row.rstrip("| ").rpartition("| ")[2]
        assert len(meaning) > 4 and ":class:" not in meaning and "``" not in meaning, key


def test_every_written_page_is_of_something_that_exists(generate: ModuleType) -> None:
    for kind, folder in (("algos", "algorithms"), ("envs", "environments")):
        written = {path.stem for path in (_DOCS / folder).glob("*.md")} - {"index"}
        assert written <= set(generate.catalogue.packages(kind))


def test_a_range_a_default_and_a_comment(generate: ModuleType) -> None:
    (row,) = (
        line
        for line in generate.settings.of_algorithm("lcpo").splitlines()
        if line.startswith("| `algo.loop_similarity`")
    )
    assert "`0.99`" in row and "> 0 and ≤ 1" in row and "cosine similarity" in row


def test_formulas_are_drawn_without_scripts(generate: ModuleType) -> None:
    page = '<p><span class="arithmatex">\\(a &lt; b\\)</span></p><div class="arithmatex">\\[x^2\\]</div>'
    shown = generate.text.render_formulas(page)
    assert shown.count("<math") == 2 and "arithmatex" not in shown and "&#x0003C;" in shown


def test_the_layers_are_those_of_the_contract(generate: ModuleType) -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (
        one["layers"] for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers"
    )
    assert generate.catalogue.layers().count('<div class="layer">') == len(layers)
