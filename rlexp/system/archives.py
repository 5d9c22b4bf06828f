"""Zip archives from anywhere: what they announce is compared with what they hold before any of it is unpacked."""

from __future__ import annotations

import math
import os
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

Shapes = dict[str, tuple[tuple[int, ...], "np.dtype[Any]"]]

_MOST_OF_MEMORY = 0.5
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def open_stored(file: IO[bytes]) -> zipfile.ZipFile:
    """Open an archive whose members together are no larger than itself.

    :raises ValueError: when it is none
    """
    size = file.seek(0, os.SEEK_END)
    archive = zipfile.ZipFile(file)
    members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("it is compressed")
    if sum(member.file_size for member in members) > size:
        raise ValueError("its members claim to be larger than the file")
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise ValueError("two members have the same name")
    if any(name.startswith("/") or ".." in Path(name).parts for name in names):
        raise ValueError("a member leaves the archive")
    return archive


def announced(archive: zipfile.ZipFile) -> Shapes:
    """Return shape and kind of every array of an ``.npz`` archive, by name; no array is read.

    :raises ValueError: when a member is no array, announces more or less than it holds, or all of them together would
        fill more than half of the machine's memory
    """
    found: Shapes = {}
    total = 0
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        with archive.open(member) as file:
            version = np.lib.format.read_magic(file)
            if version not in _HEADERS:
                raise ValueError(f"{name}: an array of format {version}")
            shape, _, kind = _HEADERS[version](file)
            size = math.prod(shape) * kind.itemsize
            if size != member.file_size - file.tell():
                raise ValueError(
                    f"{name}: announces {size:,} bytes and holds {member.file_size - file.tell():,}"
                )
        found[name] = (shape, kind)
        total += size
    limit = _MOST_OF_MEMORY * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if total > limit:
        raise ValueError(
            f"its arrays announce {total / 1e9:,.1f} GB, more than half of this machine's memory"
        )
    return found
