"""``python -m tests.attack [commands|corruptions|environments|signals ...] [--seed 3] [--only PATTERN]``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.attack import judge
from tests.attack.runner import KINDS, attack, select


def main() -> int:
    """Attack and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument(
        "kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}, signals; all by default"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="which keys meet which values, which bytes are flipped"
    )
    parser.add_argument("--only", help="a regular expression that the names of cases must match")
    parser.add_argument("--sample", type=int, help="so many cases of each kind")
    parser.add_argument("--workers", type=int, default=min(4, os.cpu_count() or 1))
    options = parser.parse_args()
    kinds = options.kinds or [*KINDS, "signals"]
    since = time.monotonic()
    chosen = [
        (kind, options.seed, case.name)
        for kind in kinds if kind in KINDS
        for case in select(kind, options.seed, options.only, options.sample)
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="attack-") as top:
        verdicts = attack(chosen, options.workers, Path(top)) if chosen else []
    print(f"\n{judge.table(verdicts)}" if verdicts else "")
    faults = sum(bool(verdict.broken) for verdict in verdicts)
    if "signals" in kinds:
        from tests.attack import signals

        counts = signals.attack()
        print("\nsignals\n" + "\n".join(f"{kind:30} {count:6}" for kind, count in counts.items()))
        faults += sum(count for kind, count in counts.items() if kind != "signals")
    print(f"\n{len(verdicts)} cases, {faults} offenders, {time.monotonic() - since:.0f} s")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
