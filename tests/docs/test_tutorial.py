"""The tutorial: every command and every line of Python, exactly as printed, in one empty folder."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlexp.cli.app import main
from tests.test_documented_commands import TUTORIAL


def blocks() -> Iterator[tuple[int, str, str]]:
    """Exit code, language and content of every block that is run, in order."""
    text = TUTORIAL.read_text(encoding="utf-8")
    pattern = r"(?:<!-- exit code: (\d) -->\n)?```(sh|python)\n(.*?)```"
    for code, language, content in re.findall(pattern, text, re.DOTALL):
        yield int(code or 0), language, content


@pytest.mark.slow
def test_it_runs_as_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = 0
    for expected, language, content in blocks():
        if language == "python":
            exec(compile(content, str(TUTORIAL), "exec"), {})
            continue
        for line in content.splitlines():
            code = main([_own_folder(word) for word in shlex.split(line)[1:]])
            shown = capfd.readouterr()
            assert code == expected, f"{line}: {shown.err or shown.out}"
            ran += 1
    assert ran >= 10


def _own_folder(word: str) -> str:
    """What the reader puts in for a placeholder."""
    if word == "RUN":
        return str(next(Path().glob("outputs/runs/gym-CartPole-v1/ppo/*/seed=0")))
    return str(next(Path().glob("outputs/multirun/*"))) if word == "DIR" else word
