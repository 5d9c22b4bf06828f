"""A sample of ``make attack``: a few odd command lines, damaged files and faulty environments of every kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.attack import commands, corruptions, environments
from tests.attack.runner import KINDS
from tests.conftest import environment

_SAMPLE = 2  # of each kind
_TOP = Path(__file__).resolve().parent.parent


def test_there_are_enough_cases_and_no_two_of_one_name() -> None:
    for module, least in ((commands, 450), (corruptions, 200), (environments, 35)):
        cases = module.cases(0)
        assert len(cases) >= least
        assert len({case.name for case in cases}) == len(cases)


@pytest.mark.slow
def test_sample() -> None:
    """Every so many-th case, always the same ones; a process of its own, since cases are forked from it."""
    command = [sys.executable, "-m", "tests.attack", *KINDS, "--sample", str(_SAMPLE), "--workers", "1"]
    result = subprocess.run(command, cwd=_TOP, env=environment(), capture_output=True, text=True, timeout=400)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{_SAMPLE * len(KINDS)} cases, 0 offenders" in result.stdout
