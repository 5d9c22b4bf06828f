"""The front door."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROBE = """
import sys
from rlexp.cli import main
code = main({arguments})
assert 'torch' not in sys.modules
sys.exit(code)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        [],
        ["algo=lcpo", "env=restaurant", "--cfg", "job"],
        ["list"],
        ["resume", "--help"],
        ["info", "lcpo"],
    ],
)
def test_needs_no_torch(arguments: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-c", _PROBE.format(arguments=arguments)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert "lcpo" in result.stdout or "resume" in result.stdout


def test_config_is_complete(rlexp) -> None:
    shown = rlexp("algo=lcpo", "env=restaurant", "--cfg", "job", "--resolve").stdout
    for line in ("seed: 0", "total_episodes: 2000", "n_epochs: 10", "error_rate: 0.15", "keep_last: 2"):
        assert line in shown


def test_lists(rlexp) -> None:
    algos = rlexp("list", "algos").stdout
    assert "recurrent_ppo" in algos and "restaurant" in algos
    envs = rlexp("list", "envs").stdout
    assert "lcpo" in envs and "268" in envs


def test_version(rlexp) -> None:
    assert rlexp("--version").stdout.startswith("rlexp ")


def test_tab_completion_offers_our_choices(rlexp) -> None:
    result = rlexp("-sc", "query=bash", env={"COMP_LINE": "rlexp algo=lc", "COMP_POINT": "13"})
    assert "algo=lcpo" in result.stdout
