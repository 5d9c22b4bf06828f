"""Cases of every kind, run in worker processes that fork a child for each."""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.attack import commands, corruptions, environments, judge, sandbox

KINDS: dict[str, Any] = {"commands": commands, "corruptions": corruptions, "environments": environments}


def select(kind: str, seed: int, only: str | None, sample: int | None) -> list[Any]:
    """Return the cases of a kind; a sample takes them at equal distances."""
    cases = [case for case in KINDS[kind].cases(seed) if only is None or re.search(only, case.name)]
    return cases if sample is None else cases[:: max(1, len(cases) // sample)][:sample]


def _worker(top: Path, pipe: Any) -> None:
    """Run the cases that arrive, one forked child each, until None does."""
    sandbox.preload()
    while (message := pipe.recv()) is not None:
        kind, seed, number, name = message
        case = next(case for case in _all(kind, seed) if case.name == name)
        room = top / f"{kind}-{number}"  # the canary is looked for in here, beside the case's folder
        folder = room / "case"
        folder.mkdir(parents=True)
        try:
            verdict = KINDS[kind].attack(case, folder)
        except Exception as error:  # the attack itself is wrong
            verdict = judge.Verdict(kind, name, "", 0.0, {"traceback": f"in the attack: {error!r}"})
        shutil.rmtree(room, ignore_errors=True)
        pipe.send(verdict)


@functools.cache
def _all(kind: str, seed: int) -> list[Any]:
    return list(KINDS[kind].cases(seed))


def attack(
    chosen: list[tuple[str, int, str]], workers: int, top: Path, quiet: bool = False
) -> list[judge.Verdict]:
    """Run cases, given as kind, seed and name, in worker processes.

    :param top: an empty folder
    """
    trap = sandbox.Trap()
    hidden = ("RLEXP_TRACEBACK", "WANDB_API_KEY", "WANDB_MODE")
    for name in hidden:
        os.environ.pop(name, None)
    os.environ.update(
        OMP_NUM_THREADS="1", COLUMNS="200", PYTHONSAFEPATH="1", WANDB_BASE_URL=trap.address, HTTP_PROXY=trap.address,
        HTTPS_PROXY=trap.address, http_proxy=trap.address, https_proxy=trap.address, HOME=str(top), no_proxy="",
    )  # fmt: skip
    context = get_context("spawn")
    verdicts: list[judge.Verdict] = []

    def serve(waiting: Iterator[tuple[int, tuple[str, int, str]]]) -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=_worker, args=(top, theirs))
        process.start()
        theirs.close()
        for number, (kind, seed, name) in waiting:
            ours.send((kind, seed, number, name))
            verdict = ours.recv()
            verdicts.append(verdict)
            if not quiet and (verdict.broken or number % 25 == 0):
                said = "; ".join(f"{rule}: {seen}" for rule, seen in verdict.broken.items()) or "ok"
                print(
                    f"{number + 1:4}/{len(chosen)} {verdict.seconds:5.1f} s  {name}: {said}"[:300], flush=True
                )
        ours.send(None)
        process.join()

    lock_free = iter(list(enumerate(chosen)))  # next() of a list's iterator is atomic
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(serve, lock_free) for _ in range(workers)]:
            done.result()
    if trap.visits:
        verdicts.append(
            judge.Verdict("commands", "all", "", 0.0, {"connection": f"{trap.visits} to the trap"})
        )
    return verdicts
