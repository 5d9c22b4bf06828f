"""Packages that ``pip install rlexp`` does not install, but one of its extras does."""

from __future__ import annotations

from importlib.util import find_spec

from rlexp.errors import UsageError


def require(package: str, extra: str, needed_by: str) -> None:
    """Validate that an optional package is installed, without importing it.

    :param package: name under which it is imported
    :param extra: the extra that installs it
    :param needed_by: what needs it, as typed: ``"env=minigrid"``
    :raises UsageError: with the line to type when it is missing
    """
    if find_spec(package) is None:
        raise UsageError(f"{needed_by}: {package} is not installed; pip install 'rlexp[{extra}]'")
