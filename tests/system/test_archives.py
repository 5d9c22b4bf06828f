"""What an archive announces is compared with what it holds before anything is unpacked."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import pytest

from rlexp.system.archives import announced, open_stored


def _archive(shape: tuple[int, ...], content: bytes, how: int = zipfile.ZIP_DEFLATED) -> io.BytesIO:
    """One array of single bytes that announces a shape."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive, archive.open("one.npy", "w") as member:
        header: Any = {"descr": "|u1", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(member, header)
        member.write(content)
    return file


def test_what_numpy_writes_is_announced_as_it_is() -> None:
    file = io.BytesIO()
    np.savez(file, a=np.zeros((3, 2), np.float32), b=np.ones((), np.int64))
    found = announced(open_stored(file))
    assert {name: (shape, kind.name) for name, (shape, kind) in found.items()} == {
        "a": ((3, 2), "float32"),
        "b": ((), "int64"),
    }


@pytest.mark.parametrize("shape", [(1000,), (2**62,), (3,)])
def test_a_shape_that_the_content_does_not_have(shape: tuple[int, ...]) -> None:
    with zipfile.ZipFile(_archive(shape, bytes(10))) as archive, pytest.raises(ValueError, match="holds 10"):
        announced(archive)


def test_more_than_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlexp.system.archives._MOST_OF_MEMORY", 1e-7)
    with (
        zipfile.ZipFile(_archive((10**6,), bytes(10**6))) as archive,
        pytest.raises(ValueError, match="memory"),
    ):
        announced(archive)


def test_compressed_where_nothing_compresses() -> None:
    with pytest.raises(ValueError, match="compressed"):
        open_stored(_archive((10,), bytes(10)))
    open_stored(_archive((10,), bytes(10), zipfile.ZIP_STORED))


def test_no_array() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("one.npy", b"nothing of the kind")
    with zipfile.ZipFile(file) as archive, pytest.raises(ValueError, match="magic"):
        announced(archive)
