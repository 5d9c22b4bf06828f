from __future__ import annotations

from pathlib import Path

import pytest

from rlexp.cli import main
from tests.conftest import only_run


def test_figures_are_a_line_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The months of a year stay in the file."""
    monkeypatch.chdir(tmp_path)
    assert (
        main(["algo=constant", "env=datacenter", "env.backend=surrogate", "env.days=2", "logger=none"]) == 0
    )
    capsys.readouterr()
    assert main(["evaluate", str(only_run(tmp_path))]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert any(line.split()[0] == "step_reward_mean" for line in shown)
    assert max(map(len, shown)) <= 80 and not any("month" in line for line in shown)
