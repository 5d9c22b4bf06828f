"""Says that a moment has come and stays there."""

import hashlib
import os
import time
from pathlib import Path

HERE = Path.cwd()


def pause(hang: bool = False) -> None:
    """Stay until the file ``go`` appears.

    :param hang: forever, and in C, where Python runs no signal handler
    """
    if (HERE / "reached").exists():
        return
    (HERE / "reached").write_text(str(os.getpid()))
    if hang:
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)
    until = time.monotonic() + 60
    while not (HERE / "go").exists() and time.monotonic() < until:
        time.sleep(0.02)
