"""Stopping, through the real command: a sample of ``tests/attack/signals.py``, which has a case for every moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlexp.system import stopping
from tests.attack import signals
from tests.conftest import environment

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")

SAMPLE = (
    ("train", "listening", "SIGINT"),
    ("train", "import:torch", "SIGTERM+SIGTERM"),
    ("train", "wandb", "SIGINT"),
    ("train", "rollout", "SIGTERM"),
    ("train", "hang", "SIGINT+SIGINT"),
    ("train", "final", "SIGTERM"),
    ("-m", "rollout", "SIGKILL"),
    ("report", "import:rlexp.reports.metrics", "SIGINT"),
    ("sweep", "import:hydra", "SIGINT"),
)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> signals.Arena:
    return signals.Arena(tmp_path_factory.mktemp("signals"), forked=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE, ids=" ".join)
def test_a_signal_at(arena: signals.Arena, name: tuple[str, str, str]) -> None:
    case = next(case for case in signals.CASES if tuple(str(case).split()) == name)
    outcome = arena.run(case)
    assert not outcome.faults, f"{outcome.faults}\n{outcome.said}"


def test_every_moment_is_a_case_of_its_own() -> None:
    names = [(str(case), case.command) for case in signals.CASES]
    assert len(set(names)) == len(names)
    assert sum(len(case.signals) for case in signals.CASES) >= 20


def _python(code: str, **changes: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**environment(), **changes},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


LOOP = """
import time
from rlexp.system import stopping
with stopping.listening(), stopping.deferred("stopping after {}".format, lambda number: print("last", flush=True)):
    with stopping.doing("lunch"):
        print("ready", flush=True)
        while True:
            time.sleep(0.01)
"""


def test_a_wrapper_that_repeats_a_signal_does_not_end_the_process_at_once() -> None:
    process = _python(LOOP)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for _ in range(3):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
    assert process.poll() is None
    time.sleep(0.6)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 143 and out == "last\n"
    assert err == "rlexp: SIGTERM: stopping after lunch\nrlexp: ended at once\n"


def test_an_ignored_interrupt_stays_ignored() -> None:
    process = _python("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + LOOP)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert process.poll() is None
    process.kill()
    _, err = process.communicate()
    assert err == ""


def test_a_process_ends_with_the_one_that_it_follows() -> None:
    parent = _python("import time; time.sleep(60)")
    child = _python(
        f"import time; from rlexp.system import stopping; stopping.follow_parent({parent.pid}); print(flush=True)\n"
        "time.sleep(60)"
    )
    assert child.stdout is not None
    child.stdout.readline()
    parent.kill()
    parent.communicate()
    child.communicate(timeout=10)
    assert child.returncode == -signal.SIGTERM


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in stopping.SIGNALS]
    with stopping.listening():
        assert [signal.getsignal(number) for number in stopping.SIGNALS] != before
        with pytest.raises(stopping.Stopped, match="SIGTERM"):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        assert stopping.requested() == signal.SIGTERM
    assert [signal.getsignal(number) for number in stopping.SIGNALS] == before
    assert stopping.requested() is None
