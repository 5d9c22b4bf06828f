"""``python -m rlexp``."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # ``-m`` has put the current folder first, and whatever lies there could pose as any module that follows.
        del sys.path[0]

    from rlexp.cli import main

    sys.exit(main())
