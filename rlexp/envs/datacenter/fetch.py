"""``python -m rlexp.envs.datacenter.fetch``: install the package whose building model and weather files are read.

It cannot be an ordinary dependency: only its data files are wanted, none of what it depends on, and newer versions of
pip reject its metadata even when nothing of that is to be installed. uv does not.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

from rlexp.system.install import install

REQUIREMENT = "sinergym==3.5.1"
_PACKAGE = "sinergym"


def main() -> int:
    """Install it, unless it is there.

    :return: exit code
    """
    failure = None if find_spec(_PACKAGE) is not None else install("--no-deps", REQUIREMENT)
    if failure is None:
        return 0
    print(
        f"{failure}\nenv=datacenter needs the data files of {REQUIREMENT}; install it without its dependencies: "
        f"pip install --no-deps {REQUIREMENT}, or uv pip install --no-deps {REQUIREMENT}",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
