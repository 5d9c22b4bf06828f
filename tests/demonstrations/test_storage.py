"""Demonstrations on disk: what is written is read, and nothing else is."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlexp.demonstrations import header as headers
from rlexp.demonstrations import storage as demos
from rlexp.demonstrations.dataset import Demonstrations, Episode
from rlexp.demonstrations.space_serialization import space_from_json, space_to_json
from rlexp.errors import UsageError

_QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

_SPACES: list[spaces.Space[Any]] = [
    spaces.Box(0, 255, (2, 3), np.uint8),
    spaces.Box(-np.inf, np.inf, (4,), np.float32),
    spaces.Box(np.array([-1.5, 0], np.float32), np.array([np.inf, 2], np.float32)),
    spaces.Box(-2, 2, (), np.float64),
    spaces.Box(0, 255, (32, 33, 3), np.uint8),  # large enough for Minari to make a JPEG image of it
    spaces.Discrete(7),
    spaces.Discrete(3, start=-1, dtype=np.int32),  # type: ignore[type-var]
    spaces.MultiDiscrete([2, 3, 4]),
    spaces.MultiBinary(5),
    spaces.Dict({"image": spaces.Box(0, 10, (3, 3, 2), np.uint8), "way": spaces.Box(0, 3, (1,), np.uint8)}),
]
_FLAT = [space for space in _SPACES if not isinstance(space, spaces.Dict)]


def _column(space: spaces.Space[Any], n: int) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _column(part, n) for key, part in space.spaces.items()}
    return np.array([space.sample() for _ in range(n)], dtype=space.dtype)


def _episode(
    observation_space: spaces.Space[Any], action_space: spaces.Space[Any], length: int, rewards: list[float]
) -> Episode:
    return Episode(
        _column(observation_space, length + 1),
        _column(action_space, length),
        np.resize(np.array(rewards, np.float32), length),
        terminated=length % 2 == 0,
        truncated=length % 2 == 1,
    )


def _some(
    observation_space: spaces.Space[Any] = _SPACES[-1], lengths: tuple[int, ...] = (3, 1, 4)
) -> Demonstrations:
    actions = spaces.Discrete(7, seed=1)
    observation_space.seed(2)
    episodes = tuple(_episode(observation_space, actions, length, [0.0, 1.0]) for length in lengths)
    return Demonstrations(episodes, observation_space, actions, {"task": "somewhere", "seed": 3})


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


@_QUICK
@given(
    st.sampled_from(_SPACES),
    st.sampled_from(_FLAT),
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=5),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["some.npz", "some-v0"]),
)
def test_read_is_what_was_written(
    tmp_path: Path,
    observations: spaces.Space[Any],
    actions: spaces.Space[Any],
    lengths: list[int],
    rewards: list[float],
    seed: int,
    name: str,
) -> None:
    observations.seed(seed)
    actions.seed(seed)
    episodes = tuple(_episode(observations, actions, length, rewards) for length in lengths)
    provenance = {"task": "ünïcode", "numbers": [1, 2.5, None], "nested": {"yes": True}}
    path = tmp_path / name
    demos.write(path, Demonstrations(episodes, observations, actions, provenance))
    found = demos.read(path)
    assert found.observation_space == observations and found.action_space == actions
    assert found.provenance == provenance == demos.read_header(path)["provenance"]
    assert len(found) == len(episodes) and found.n_actions == sum(lengths)
    for one, other in zip(found.episodes, episodes, strict=True):
        assert _equal(one.observations, other.observations)
        assert _equal(one.actions, other.actions) and _equal(one.rewards, other.rewards)
        assert (one.terminated, one.truncated) == (other.terminated, other.truncated)


@pytest.mark.parametrize("space", _SPACES, ids=str)
def test_spaces_survive_json(space: spaces.Space[Any]) -> None:
    text = json.dumps(space_to_json(space), allow_nan=False)
    assert space_from_json(json.loads(text)) == space


def test_the_same_demonstrations_give_the_same_bytes(tmp_path: Path) -> None:
    some = _some()
    for name in ("one.npz", "two.npz"):
        demos.write(tmp_path / name, some)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.npz", "two.npz"], (
        "nothing half done is left"
    )


def test_numpy_reads_it_without_us(tmp_path: Path) -> None:
    some = _some()
    demos.write(tmp_path / "some.npz", some)
    with np.load(tmp_path / "some.npz", allow_pickle=False) as archive:
        assert archive["lengths"].tolist() == [3, 1, 4]
        assert np.array_equal(archive["observations.image"][4:6], some.episodes[1].observations["image"])  # type: ignore[index]
        assert json.loads(archive["header"].tobytes())["format"] == "rlexp demonstrations"


@_QUICK
@given(st.data())
def test_a_damaged_file_is_rejected_in_one_line(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "some.npz"
    demos.write(path, _some())
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans(), "cut off"):
        content = content[: data.draw(st.integers(0, len(content) - 1), "at")]
    else:
        place = data.draw(st.integers(0, len(content) - 1), "place")
        content[place] ^= 1 << data.draw(st.integers(0, 7), "bit")
    path.write_bytes(bytes(content))
    try:
        found = demos.read(path)
    except UsageError as error:
        assert str(path) in str(error) and "\n" not in str(error)
    else:  # a bit in the archive's dates and the like; never one of what was recorded
        demos.write(tmp_path / "again.npz", found)
        demos.write(path, _some_like(found))
        assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def _some_like(found: Demonstrations) -> Demonstrations:
    return Demonstrations(found.episodes, _SPACES[-1], spaces.Discrete(7), {"task": "somewhere", "seed": 3})


def _rewrite(path: Path, **changed: Any) -> None:
    """Change members and leave the checksum as it was."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez_compressed(path, **{**arrays, **changed})


def test_a_changed_reward_does_not_fit_the_checksum(tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    demos.write(path, _some())
    with np.load(path) as archive:
        rewards = archive["rewards"] + 1
    _rewrite(path, rewards=rewards)
    with pytest.raises(UsageError, match="checksum does not fit"):
        demos.read(path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rewards": np.zeros(9, np.float32)}, "rewards: float32"),
        ({"lengths": np.array([8, 0, 0])}, "lengths are no positive numbers"),
        ({"lengths": np.array([2**62, 2**62, 2**62])}, "announced"),
        ({"actions": np.full(8, 7)}, "outside"),
        ({"actions": np.zeros(8, np.float32)}, "outside"),
        ({"truncated": np.zeros(3, np.bool_), "terminated": np.zeros(3, np.bool_)}, "no end"),
        ({"surplus": np.zeros(3)}, "surplus"),
    ],
)
def test_what_fits_the_checksum_must_still_make_sense(
    tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    path = tmp_path / "some.npz"
    demos.write(path, _some())
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files} | changed
    header = json.loads(arrays.pop("header").tobytes())
    del header["checksum"]
    header["checksum"] = headers.checksum(header, arrays)
    np.savez_compressed(path, header=np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays)
    with pytest.raises(UsageError, match=message) as caught:
        demos.read(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_foreign_files(tmp_path: Path) -> None:
    for name, content in (("text.npz", b"hello"), ("empty.npz", b""), ("pickle.npz", b"\x80\x04N.")):
        (tmp_path / name).write_bytes(content)
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    np.savez(tmp_path / "lies.npz", header=np.frombuffer(b'{"format": "x"}', np.uint8))
    np.savez(tmp_path / "objects.npz", header=np.array([{}], dtype=object))
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    for path in tmp_path.iterdir():
        with pytest.raises(UsageError, match=r"not a file of demonstrations|cut off or damaged"):
            demos.read(path)
    with pytest.raises(UsageError, match=r"no such file"):
        demos.read(tmp_path / "nowhere.npz")


def test_a_file_of_the_future_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as future:
        future.setattr(headers, "VERSION", 2)
        demos.write(tmp_path / "some.npz", _some())
    with pytest.raises(UsageError, match="version 2, this rlexp reads 1"):
        demos.read(tmp_path / "some.npz")


def test_other_spaces_are_rejected() -> None:
    some = _some()
    some.require(_SPACES[-1], spaces.Discrete(7), "file")
    with pytest.raises(
        UsageError, match=r"^file: its actions are Discrete\(7\), the environment's Discrete\(6\)$"
    ):
        some.require(_SPACES[-1], spaces.Discrete(6), "file")
    with pytest.raises(UsageError, match=r"^file: its observations are .*way.*, the environment's float32"):
        some.require(_SPACES[1], spaces.Discrete(7), "file")


def test_what_is_no_whole_episode_is_not_written(tmp_path: Path) -> None:
    good = _some().episodes[0]
    bad = [
        Episode(good.observations, good.actions[:-1], good.rewards[:-1], True, False),
        Episode(good.observations, good.actions, good.rewards, False, False),
        Episode(good.observations, good.actions, good.rewards.astype(np.float64), True, False),
        Episode(good.observations, good.actions, good.rewards * np.float32(np.nan), True, False),
        Episode({}, good.actions, good.rewards, True, False),
    ]
    for episode in bad:
        with pytest.raises(ValueError, match="episode 0"):
            demos.write(tmp_path / "bad.npz", Demonstrations((episode,), _SPACES[-1], spaces.Discrete(7), {}))
    endless = Episode(np.full((4, 4), np.inf, np.float32), good.actions, good.rewards, True, False)
    with pytest.raises(ValueError, match="episode 0: observations that are not finite"):
        demos.write(tmp_path / "bad.npz", Demonstrations((endless,), _SPACES[1], spaces.Discrete(7), {}))
    with pytest.raises(ValueError, match="no episodes"):
        demos.write(tmp_path / "bad.npz", Demonstrations((), _SPACES[-1], spaces.Discrete(7), {}))
    assert list(tmp_path.iterdir()) == []


def test_more_rows_than_the_lengths_say_are_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "some.npz"
    demos.write(path, _some())
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez_compressed(path, **{**arrays, "rewards": np.zeros(10**6, np.float32)})
    read: list[int] = []
    whole = np.lib.format.read_array
    monkeypatch.setattr(
        np.lib.format, "read_array", lambda *one, **more: read.append(1) or whole(*one, **more)
    )
    with pytest.raises(UsageError, match=r"rewards: float32 \(1000000,\) announced, the lengths say \(8,\)"):
        demos.read(path)
    assert len(read) <= 2  # header and lengths
