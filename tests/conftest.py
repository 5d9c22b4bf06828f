"""Shared by all tests: the real command, in its own folder."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import forked

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # a job in the background: its children would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)

Rlexp = Callable[..., subprocess.CompletedProcess[str]]

# An environment that needs no data, small enough for a run of about a second.
CARTPOLE = (
    "algo=ppo",
    "env=gym",
    "env.id=CartPole-v1",
    "tuned=none",
    "algo.n_steps=64",
    "total_timesteps=512",
    "logger=none",
    "evaluation.episodes=2",
)


def environment() -> dict[str, str]:
    """One thread each: tests run side by side."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "WANDB_SILENT": "true", "COLUMNS": "200"}


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Hydra configures the root logger; in a test its handlers write to a stream that ends with the test."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def rlexp(tmp_path: Path) -> Rlexp:
    """The command line in a separate process, in an empty folder; see :mod:`tests.forked`."""

    def run(
        *arguments: str, env: dict[str, str] | None = None, timeout: float = 120, cwd: Path = tmp_path
    ) -> subprocess.CompletedProcess[str]:
        return forked.run(arguments, cwd, {**environment(), **(env or {})}, timeout)

    return run


@pytest.fixture
def fresh_rlexp(tmp_path: Path) -> Rlexp:
    """The command line in a new interpreter: where it matters what is imported, from where, or on what terms."""

    def run(
        *arguments: str, env: dict[str, str] | None = None, timeout: float = 120, cwd: Path = tmp_path
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rlexp", *arguments],
            cwd=cwd,
            env={**environment(), **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run


def only_run(folder: Path) -> Path:
    """The one run folder below an output folder."""
    (found,) = folder.glob("**/runs/*/*/*/seed=*")
    return found
