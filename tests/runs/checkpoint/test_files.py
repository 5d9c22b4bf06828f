"""Checkpoints are atomic and pickle-free, and whatever happens to a byte of them is noticed."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlexp.runs import checkpoint
from rlexp.runs.checkpoint import files
from rlexp.runs.folder import Extent

_TREE: dict[str, Any] = {
    "tensor": th.arange(6, dtype=th.float32).reshape(2, 3),
    "array": np.arange(4, dtype=np.uint8),
    "by_number": {0: {"step": th.tensor(3.0)}, 1: {"step": th.tensor(4.0)}},
    "pair": (1, 2.5),
    "text": "x",
    "nothing": None,
    "large": 2**100,
}


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, (th.Tensor, np.ndarray)):
        return type(one) is type(other) and one.dtype == other.dtype and bool((one == other).all())
    return bool(one == other)


def test_round_trip(tmp_path: Path) -> None:
    continues = {"metrics.jsonl": Extent(3, "ab"), "evaluations.jsonl": Extent(0, None)}
    state, extents = files.read(checkpoint.save(tmp_path, _TREE, 10, keep_last=2, continues=continues))
    assert _same(_TREE, state) and extents == continues


def test_only_the_last_ones_stay(tmp_path: Path) -> None:
    for step in (10, 20, 30, 1000):
        checkpoint.save(tmp_path, {"step": step}, step, keep_last=2)
    assert [checkpoint.load(path)["step"] for path in checkpoint.available(tmp_path)] == [1000, 30]


def test_between_two_checkpoints_no_step_may_lie(tmp_path: Path) -> None:
    """Pre-training changes everything at step 0."""
    for updates in (50, 100, 150):
        checkpoint.save(tmp_path, {"updates": updates}, 0, keep_last=2)
    assert [checkpoint.load(path)["updates"] for path in checkpoint.available(tmp_path)] == [150, 100]


def test_nothing_unpickles(tmp_path: Path) -> None:
    folder = checkpoint.save(tmp_path, _TREE, 10, keep_last=1)
    assert sorted(path.name for path in folder.iterdir()) == ["arrays.npz", "manifest.json", "state.json"]
    json.loads((folder / "state.json").read_text())
    with np.load(folder / "arrays.npz", allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
    with pytest.raises(TypeError, match="cannot hold"):
        checkpoint.save(tmp_path, {"object": object()}, 20, keep_last=1)
    assert [path.name for path in tmp_path.iterdir()] == [folder.name], "nothing is left of it"


def test_a_checkpoint_that_was_being_written_is_not_seen(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"step": 1}, 1, keep_last=3)
    (tmp_path / ".000000000002-000001.77").mkdir()
    (tmp_path / ".someone_elses").mkdir()
    assert len(checkpoint.available(tmp_path)) == 1
    checkpoint.save(tmp_path, {"step": 3}, 3, keep_last=3)
    assert [path.name for path in tmp_path.glob(".*")] == [".someone_elses"], (
        "leftovers of a kill are removed"
    )


def _earlier(folder: Path) -> Path:
    """Turn a checkpoint into one of the earlier format."""
    (folder / files.MANIFEST).unlink()
    return folder.rename(folder.with_name(folder.name.split("-")[0]))


def test_the_earlier_format_is_read(tmp_path: Path) -> None:
    state = {"step": 1, "files": {"metrics.jsonl": 7, "evaluations.jsonl": 9}}
    folder = _earlier(checkpoint.save(tmp_path, state, 10, keep_last=2))
    found, continues = files.read(folder)
    assert found == state and continues["metrics.jsonl"] == Extent(7, None)
    newer = checkpoint.save(tmp_path, {"step": 2}, 10, keep_last=2)
    assert checkpoint.available(tmp_path) == [newer, folder]


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint to be damaged."""
    state = {"step": 20, "weights": th.arange(400.0), "rng": list(range(30))}
    continues = {"metrics.jsonl": Extent(100, "f" * 64)}
    return checkpoint.save(tmp_path_factory.mktemp("intact"), state, 20, keep_last=1, continues=continues)


_NAMES = (files.STATE, files.ARRAYS, files.MANIFEST)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(name=st.sampled_from(_NAMES), place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_no_byte_can_change(intact: Path, tmp_path: Path, name: str, place: float, flip: int) -> None:
    folder = tmp_path / intact.name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(intact, folder)
    content = bytearray((folder / name).read_bytes())
    content[int(place * len(content))] ^= flip
    (folder / name).write_bytes(content)
    with pytest.raises(checkpoint.CheckpointError, match=intact.name):
        # White space and escapes of the manifest's JSON may change without a change of what it says.
        if name == files.MANIFEST and _says_the_same(intact / name, folder / name):
            raise checkpoint.CheckpointError(intact.name)
        checkpoint.load(folder)


def _says_the_same(one: Path, other: Path) -> bool:
    try:
        return bool(json.loads(one.read_text()) == json.loads(other.read_text()))
    except ValueError:
        return False


def _edit(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.write_text(json.dumps(change(json.loads(path.read_text()))))

    return damage


_DAMAGES: dict[str, Callable[[Path], Any]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    "list": lambda path: path.write_text("[]"),
    "null": lambda path: path.write_text("null"),
    "deep": lambda path: path.write_text("[" * 100_000),
}


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("damage", _DAMAGES)
def test_damage_is_noticed(intact: Path, tmp_path: Path, name: str, damage: str) -> None:
    folder = tmp_path / intact.name
    shutil.copytree(intact, folder)
    if (name, damage) == (files.MANIFEST, "longer"):
        pytest.skip("a newline more is the same JSON")
    _DAMAGES[damage](folder / name)
    with pytest.raises(checkpoint.CheckpointError, match=intact.name):
        checkpoint.load(folder)


@pytest.mark.parametrize("key", ["format", "files", "continues", "sha256"])
def test_a_key_of_the_manifest_is_missing(intact: Path, tmp_path: Path, key: str) -> None:
    folder = tmp_path / intact.name
    shutil.copytree(intact, folder)
    _edit(lambda manifest: {name: value for name, value in manifest.items() if name != key})(
        folder / files.MANIFEST
    )
    with pytest.raises(checkpoint.CheckpointError, match=r"manifest\.json is not as it was written"):
        checkpoint.load(folder)


def test_a_full_disk_leaves_the_older_checkpoint_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = checkpoint.save(tmp_path, {"weights": np.ones(1000)}, 1, keep_last=1)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.np.lib.format, "write_array", full)
    with pytest.raises(OSError, match=r"No space left on device.*000000000002-000001"):
        checkpoint.save(tmp_path, {"weights": np.ones(1000)}, 2, keep_last=1)
    assert [path.name for path in tmp_path.iterdir()] == [older.name]
    assert checkpoint.load(older)["weights"].sum() == 1000
