"""Result tables and figures, rendered by ``rlexp report NAME --reference`` and kept until a record changes."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from generate import text
from generate.catalogue import TOP

CACHE = TOP / "outputs" / "docs"
"""Reports that were rendered before; the folder is ignored by git."""

REFERENCE = TOP / "outputs" / "reference"

_FOLDED = ("Every cell", "Every seed", "Definitions", "Missing")


def prepare(names: Iterable[str], processes: int = 2) -> None:
    """Render the reports that are not in the cache.

    :raises RuntimeError: when a report fails
    """
    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(_render, sorted(set(names))))


def _render(name: str) -> None:
    folder = _folder(name)
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f"{name}-", suffix=".draft", dir=CACHE))
        command = [sys.executable, "-m", "rlexp", "report", name, "--reference", "--output", str(draft)]
        done = subprocess.run(command, cwd=TOP, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        if folder.is_dir():  # another build was first
            shutil.rmtree(draft)
        else:
            draft.rename(folder)


def _folder(name: str) -> Path:
    """Return where a report is kept: everything that it is made of is part of the name."""
    from rlexp.reports import sweep_file

    source = hashlib.sha256()
    records = REFERENCE / sweep_file.load(name).runs_of
    code = sorted((TOP / "rlexp" / "reports").glob("*"))
    paths = [TOP / "sweeps" / f"{name}.yaml", TOP / "rlexp" / "stats.py", *code, *sorted(records.rglob("*"))]
    for path in (path for path in paths if path.is_file()):
        source.update(str(path.relative_to(TOP)).encode() + path.read_bytes())
    return CACHE / f"{name}-{source.hexdigest()[:12]}"


def report(name: str) -> tuple[str, dict[str, Path]]:
    """Return a report as Markdown for a page, and its pictures by file name."""
    _render(name)
    folder = _folder(name)
    stems = [stem for stem in (f"{name}_table", name) if (folder / f"{stem}.md").is_file()]
    pictures: dict[str, Path] = {}
    parts: list[str] = []
    for stem in stems:
        body = (folder / f"{stem}.md").read_text(encoding="utf-8")
        sections = re.split(r"^## (.*)$", body, flags=re.MULTILINE)
        lead = re.sub(r"^# .*$", "", sections[0], count=1, flags=re.MULTILINE).strip()
        if f"{stem}.svg" in lead:
            lead = lead.replace(f"({stem}.svg)", f"(figures/{stem}.svg)")
            pictures[f"{stem}.svg"] = folder / f"{stem}.svg"
        if stem == name and len(stems) > 1:  # its differences stand under the table already
            parts.append(lead)
            continue
        parts.append(lead)
        for title, inside in zip(sections[1::2], sections[2::2], strict=True):
            many = inside.count("\n|") > 14
            shown = (
                text.folded(title, inside.strip())
                if title in _FOLDED or many
                else f"**{title}**\n\n{inside.strip()}"
            )
            parts.append(shown)
    made = f"<small>Rendered from `outputs/reference` by `rlexp report {name} --reference`.</small>"
    return "\n\n".join([*parts, made, ""]), pictures


def committed(name: str) -> str:
    """Return a measurement that is committed as a whole, every section folded."""
    body = (REFERENCE / name / f"{name}.md").read_text(encoding="utf-8")
    lead, *sections = re.split(r"^## (.*)$", body, flags=re.MULTILINE)
    parts = [re.sub(r"^# .*$", "", lead, count=1, flags=re.MULTILINE).strip()]
    for title, inside in zip(sections[::2], sections[1::2], strict=True):
        parts.append(text.folded(title, inside.strip()))
    return "\n\n".join(parts)


def picture(path: str) -> str:
    """Return a committed figure for a page."""
    name = Path(path).name
    return f"![{Path(path).parent.name}](figures/{name})"
