"""Pauses the interpreter where ``RLEXP_PAUSE_AT=import:<module>`` says."""

import os
import sys

MOMENT = os.environ.get("RLEXP_PAUSE_AT", "")


class Finder:
    """Sees every import begin and finds nothing."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if f"import:{name}" == MOMENT:
            sys.meta_path.remove(self)
            import pause

            pause.pause()
        return None


if MOMENT.startswith("import:"):
    sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
