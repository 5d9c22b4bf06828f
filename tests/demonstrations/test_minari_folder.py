"""Minari datasets: ours open with Minari, Minari's load here, and a hostile one gets one line."""

from __future__ import annotations

import json
import shutil
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import h5py
import minari
import numpy as np
import pytest
from torch.utils import _pytree

from rlexp.cli import main
from rlexp.demonstrations import minari_arrays, minari_folder, storage
from rlexp.demonstrations.dataset import Demonstrations
from rlexp.errors import UsageError
from rlexp.testing import toy_environments

Change = Callable[[dict[str, Any], h5py.File], Any]


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Minari keeps its datasets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


@pytest.fixture
def collect(datasets: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """Let Minari's own collector record episodes; return what was seen meanwhile.

    Of JAX it uses ``tree_map`` alone, for which PyTorch's stands in.
    """
    monkeypatch.setitem(sys.modules, "jax", types.ModuleType("jax"))
    trees = types.ModuleType("jax.tree_util")
    trees.tree_map = _pytree.tree_map  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jax.tree_util", trees)
    sys.modules["jax"].tree_util = trees  # type: ignore[attr-defined]

    def play(env: gymnasium.Env[Any, Any], name: str, episodes: int = 3) -> list[dict[str, Any]]:
        env.action_space.seed(0)
        collector = minari.DataCollector(env)
        played = []
        for seed in range(episodes):
            observation, _ = collector.reset(seed=seed)
            seen: dict[str, Any] = {"observations": [observation], "actions": [], "rewards": []}
            ended = False
            while not ended:
                action = env.action_space.sample()
                observation, reward, terminated, truncated, _ = collector.step(action)
                seen["observations"].append(observation)
                seen["actions"].append(action)
                seen["rewards"].append(reward)
                ended = terminated or truncated
            played.append({**seen, "terminated": terminated, "truncated": truncated})
        collector.create_dataset(name, algorithm_name="sampling", author="A", description="D")
        return played

    return play


def _same(found: Demonstrations, played: list[dict[str, Any]]) -> None:
    assert len(found) == len(played)
    for episode, seen in zip(found.episodes, played, strict=True):
        if isinstance(episode.observations, dict):
            for key, part in episode.observations.items():
                assert np.array_equal(part, np.stack([one[key] for one in seen["observations"]]))
        else:
            assert np.array_equal(episode.observations, np.stack(seen["observations"]))
        assert np.array_equal(episode.actions, np.array(seen["actions"]))
        assert np.array_equal(episode.rewards, np.array(seen["rewards"], np.float32))
        assert (episode.terminated, episode.truncated) == (seen["terminated"], seen["truncated"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "id",
    ["CartPole-v1", "Pendulum-v1", "rlexp-testing/dict-discrete-v0", "rlexp-testing/vector-continuous-v0"],
)
def test_what_minari_collects_is_read(id: str, collect: Any, datasets: Path) -> None:
    env = gymnasium.make(id, **({"max_episode_steps": 20} if id == "Pendulum-v1" else {}))
    played = collect(env, "some/where/mine-v3")
    for path in (datasets / "some/where/mine-v3", datasets / "some/where/mine-v3/data", "some/where/mine-v3"):
        found = storage.read(path)
        _same(found, played)
    found.require(env.observation_space, env.action_space, "dataset")
    assert found.provenance["env_id"] == id and found.provenance["dataset"] == "some/where/mine-v3"
    assert storage.read_header("some/where/mine-v3")["provenance"] == found.provenance


class _Frames(gymnasium.Env[Any, Any]):
    """Three grey gradients in colour."""

    observation_space = gymnasium.spaces.Box(0, 255, (40, 32, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)
    spec = None

    def _frame(self) -> Any:
        rows = np.linspace(0, 60 * self.steps, 40, dtype=np.uint8)
        return np.broadcast_to(rows[:, None, None], (40, 32, 3)).copy()

    def reset(self, **_: Any) -> Any:
        self.steps = 0
        return self._frame(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self._frame(), 1, self.steps == 3, False, {}


@pytest.mark.filterwarnings("ignore")
def test_images_are_decoded_as_minari_decodes_them(collect: Any) -> None:
    collect(_Frames(), "frames-v0", episodes=1)
    (episode,) = storage.read("frames-v0").episodes
    assert np.array_equal(episode.observations, minari.load_dataset("frames-v0")[0].observations)
    assert np.abs(episode.observations[-1].astype(int) - np.stack([_last()])).max() < 8  # type: ignore[union-attr]


def _last() -> Any:
    env = _Frames()
    env.steps = 3
    return env._frame()


def _ours(observations: str = "dict") -> Demonstrations:
    found = toy_environments.demonstrate(observations, episodes=3)
    provenance = {
        "task": "walk",
        "expert": {"kind": "bot"},
        "command": "rlexp demos",
        "episode_seeds": ["5", "6", str(2**63 - 1)],
    }
    return Demonstrations(found.episodes, found.observation_space, found.action_space, provenance)


@pytest.mark.parametrize("observations", ["vector", "image", "dict"])
def test_minari_reads_what_is_written(observations: str, datasets: Path) -> None:
    some = _ours(observations)
    storage.write(datasets / "ours" / "mine-v2", some)
    dataset = minari.load_dataset("ours/mine-v2")
    assert list(minari.list_local_datasets()) == ["ours/mine-v2"], "its id is the one of its place"
    assert dataset.spec.total_episodes == 3 and dataset.spec.total_steps == some.n_actions
    assert dataset.observation_space == some.observation_space and dataset.action_space == some.action_space
    metadata = dataset.storage.metadata
    assert metadata["algorithm_name"] == "bot" and metadata["description"] == "rlexp demos"
    seeds = [one["seed"] for one in dataset.storage.get_episode_metadata(range(3))]
    assert seeds == [5, 6, 2**63 - 1]
    for one, episode in zip(dataset, some.episodes, strict=True):
        for part, own in (
            [(one.observations[key], part) for key, part in episode.observations.items()]
            if isinstance(episode.observations, dict)
            else [(one.observations, episode.observations)]
        ):
            assert np.array_equal(part, own) and part.dtype == own.dtype
        assert np.array_equal(one.actions, episode.actions) and np.array_equal(one.rewards, episode.rewards)
        assert (one.terminations[-1], one.truncations[-1]) == (episode.terminated, episode.truncated)
        assert not (one.terminations | one.truncations)[:-1].any()


def test_the_same_demonstrations_have_the_same_checksum_in_both_formats(tmp_path: Path) -> None:
    for name in ("a.npz", "b", "c-v1"):
        storage.write(tmp_path / name, _ours())
    first, *others = (storage.read(tmp_path / name) for name in ("a.npz", "b", "c-v1"))
    assert first.checksum and all(other.checksum == first.checksum for other in others)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b", "c-v1"], (
        "something was left over"
    )
    metadata = json.loads((tmp_path / "b" / minari_folder.METADATA).read_text())
    assert metadata["dataset_id"] == "b-v0", "Minari wants a version"


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some"
    storage.write(path, _ours())
    before = storage.read(path).checksum

    def fail(*_: Any) -> None:
        raise OSError("no space left")

    rename = Path.rename

    def rename_but_not_the_new_one(old: Path, new: Path) -> Path:
        if new == path and "previous" not in old.name:
            fail()
        return rename(old, new)

    for owner, name, replacement in (
        (minari_folder, "_fill", fail),
        (Path, "rename", rename_but_not_the_new_one),
    ):
        with monkeypatch.context() as broken:
            broken.setattr(owner, name, replacement)
            with pytest.raises(OSError, match="no space"):
                storage.write(path, _ours("vector"))
        assert storage.read(path).checksum == before and list(tmp_path.iterdir()) == [path]
    storage.write(path, _ours("vector"))
    assert storage.read(path).checksum != before and list(tmp_path.iterdir()) == [path]


# ------------------------------------------------------------------------------------------------- hostile and damaged


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset as somebody else would have written it."""
    path = tmp_path_factory.mktemp("good") / "some"
    storage.write(path, _ours())
    _edit(path, lambda metadata, _: metadata.pop("rlexp"))
    return path


def _edit(path: Path, change: Change) -> None:
    file = path / minari_folder.METADATA
    metadata = json.loads(file.read_text())
    with h5py.File(path / "data" / "main_data.hdf5", "a") as data:
        change(metadata, data)
    file.write_text(json.dumps(metadata))


def _replaced(name: str, *args: Any, **options: Any) -> Change:
    """Put another array in the place of one."""

    def change(_: dict[str, Any], data: h5py.File) -> None:
        old = data[f"episode_0/{name}"]
        shape, dtype = old.shape, old.dtype
        del data[f"episode_0/{name}"]
        if args:
            data.create_dataset(f"episode_0/{name}", data=args[0](shape, dtype), **options)
        else:
            data.create_dataset(f"episode_0/{name}", **{"dtype": dtype, **options})

    return change


def _linked(link: Any, name: str = "episode_0/rewards") -> Change:
    def change(_: dict[str, Any], data: h5py.File) -> None:
        del data[name]
        data[name] = link

    return change


def _virtual(_: dict[str, Any], data: h5py.File) -> None:
    rewards = data["episode_0/rewards"]
    layout = h5py.VirtualLayout(rewards.shape, rewards.dtype)
    layout[:] = h5py.VirtualSource("elsewhere.hdf5", "x", rewards.shape)
    del data["episode_0/rewards"]
    data.create_virtual_dataset("episode_0/rewards", layout)


def _space(key: str = "action_space", **changed: Any) -> Change:
    def change(metadata: dict[str, Any], _: Any) -> None:
        metadata[key] = json.dumps({**json.loads(metadata[key]), **changed})

    return change


def _said(**changed: Any) -> Change:
    return lambda metadata, _: metadata.update(changed)


def _nan(shape: Any, dtype: Any) -> Any:
    return np.full(shape, np.nan, np.float64)


def _box(**changed: Any) -> dict[str, Any]:
    return {"type": "Box", "shape": [1], "low": [0], "high": [1], "dtype": "float32", **changed}


HOSTILE: dict[str, tuple[Change, str]] = {
    "soft link": (_linked(h5py.SoftLink("/episode_1/rewards")), "rewards is a link"),
    "external link": (_linked(h5py.ExternalLink("elsewhere.hdf5", "/x")), "rewards is a link"),
    "episode elsewhere": (_linked(h5py.ExternalLink("other.hdf5", "/"), "episode_1"), "episode_1 is a link"),
    "observations elsewhere": (
        _linked(h5py.ExternalLink("other.hdf5", "/"), "episode_0/observations"),
        "observations is a link",
    ),
    "raw data elsewhere": (
        _replaced("actions", shape=(9,), external=[("elsewhere.bin", 0, 72)]),
        "actions lie in another file",
    ),
    "virtual": (_virtual, "rewards lie in another file"),
    "no rewards": (lambda _, data: data["episode_0"].pop("rewards"), "rewards is missing"),
    "a group for an array": (_linked(np.zeros(3), "episode_0"), "episode_0 is no group"),
    "no episodes": (lambda _, data: [data.pop(name) for name in list(data)], "0 episodes, 3 were announced"),
    "no episodes at all": (
        lambda metadata, data: (metadata.update(total_episodes=0), [data.pop(name) for name in list(data)]),
        "there are no episodes",
    ),
    "episodes for ever": (_said(total_episodes=10**15), "3 episodes, 1000000000000000 were announced"),
    "nan reward": (_replaced("rewards", _nan), "a reward is not finite"),
    "reward beyond float32": (_replaced("rewards", lambda shape, _: np.full(shape, 1e300)), "not finite"),
    "rewards of text": (
        _replaced("rewards", lambda shape, _: np.full(shape, b"x" * 3)),
        "float32 ",
    ),
    "action outside": (_replaced("actions", lambda shape, _: np.full(shape, 99)), "actions outside"),
    "actions between": (_replaced("actions", lambda shape, _: np.full(shape, 0.5)), "not all of them int64"),
    "an action too many": (
        _replaced("actions", lambda shape, _: np.zeros(shape[0] + 1, np.int64)),
        "actions are int64",
    ),
    "end in the middle": (
        _replaced("terminations", lambda shape, _: np.ones(shape, bool)),
        "it goes on after its end",
    ),
    "no end": (
        lambda metadata, data: [
            _replaced(name, lambda shape, _: np.zeros(shape, bool))(metadata, data)
            for name in ("terminations", "truncations")
        ],
        "it has no end",
    ),
    "flags that are none": (
        _replaced("truncations", lambda shape, _: np.full(shape, 7)),
        "not all of them bool",
    ),
    "terabytes of nothing": (
        lambda _, data: [
            _replaced(name, shape=(size,), chunks=(2**16,))({}, data)
            for name, size in (("rewards", 2**40), ("terminations", 2**40), ("truncations", 2**40))
        ],
        "more than a file of this size can hold",
    ),
    "megabytes of zeros": (
        lambda _, data: [
            _replaced(name, lambda shape, dtype: np.zeros(2**22, dtype), compression="gzip")({}, data)
            for name in ("rewards", "terminations", "truncations", "actions")
        ],
        "more than a file of this size can hold",
    ),
    "no spaces, but an environment": (
        lambda metadata, _: (
            metadata.pop("action_space"),
            metadata.update(
                env_spec=json.dumps({"id": "Evil-v0", "entry_point": "antigravity:x", "kwargs": {}})
            ),
        ),
        "the metadata have no action_space",
    ),
    "space of text": (_space(type="Text", max_length=3), "Text spaces are not supported; Box, Discrete"),
    "space of nothing": (_said(action_space="null"), "cannot be understood"),
    "discrete beyond": (_space(n=10**40), "cannot be understood"),
    "discrete below": (_space(n=-1), "cannot be understood"),
    "dtype that is code": (_space(**_box(dtype="O")), "O is no kind of number"),
    "box of terabytes": (_space(**_box(shape=[10**6, 10**6], low=0, high=1)), "is no shape"),
    "bounds of another shape": (_space(**_box(low=[0, 0])), "bounds of a Box"),
    "nan bounds": (_space(**_box(low=[float("nan")])), "are no bounds"),
    "tuple": (_space(type="Tuple", subspaces=[_box()]), "which nothing here learns from"),
    "dictionary in a dictionary": (
        _space(
            "observation_space", type="Dict", subspaces={"a": {"type": "Dict", "subspaces": {"b": _box()}}}
        ),
        "which nothing here learns from",
    ),
    "key that is a path": (
        _space("observation_space", type="Dict", subspaces={"../episode_1": _box()}),
        "is no name of a part",
    ),
    "other format": (_said(data_format="arrow"), "in arrow files, hdf5 can be read"),
    "parentheses without end": (_said(action_space='{"subspaces":' * 10**5), "cannot be understood"),
    "escape sequences": (
        _said(action_space=json.dumps({"type": "\x1b]0;owned\x07"})),
        "spaces are not supported",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_dataset_is_answered_in_one_line(
    name: str, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, expected = HOSTILE[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(minari_arrays, "_SMALL", 2**20)
    shutil.copytree(good, "some")
    _edit(Path("some"), change)
    with pytest.raises(UsageError) as caught:
        storage.read("some")
    message = str(caught.value)
    assert expected in message and message.startswith("some: ") and "\n" not in message
    assert "antigravity" not in sys.modules


def test_a_command_leaves_nothing_behind(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(good, "some")
    _edit(Path("some"), HOSTILE["escape sequences"][0])
    command = ("algo=bc", "env=gym", "env.id=CartPole-v1", "total_timesteps=9", "algo.demonstrations=some")
    assert main([*command]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "spaces are not supported" in line and "\x1b" not in line
    assert [path.name for path in tmp_path.iterdir()] == ["some"]


PLACES: dict[str, tuple[Callable[[Path, Path], Any], str]] = {
    "cut off": (
        lambda data, _: (data / "main_data.hdf5").write_bytes((data / "main_data.hdf5").read_bytes()[:-99]),
        "cannot be understood|cannot be used",
    ),
    "empty": (lambda data, _: (data / "main_data.hdf5").write_bytes(b""), "cannot be understood"),
    "no data": (lambda data, _: (data / "main_data.hdf5").unlink(), "main_data.hdf5"),
    "data that are a link": (lambda data, out: _moved(data / "main_data.hdf5", out), "is a link"),
    "metadata that are a link": (lambda data, out: _moved(data / "metadata.json", out), "is a link"),
    "a folder that is a link": (lambda data, out: _moved(data, out), "is a link"),
    "metadata that are none": (lambda data, _: (data / "metadata.json").write_text("[1"), "cannot be read"),
    "metadata of another kind": (
        lambda data, _: (data / "metadata.json").write_text("[1]"),
        "not the metadata",
    ),
    "no metadata": (lambda data, _: (data / "metadata.json").unlink(), "not a Minari dataset"),
    "episodes without numbers": (
        lambda data, _: _edit(data.parent, lambda _, file: file.move("episode_1", "other")),
        "episode_1 is missing",
    ),
}


def _moved(path: Path, out: Path) -> None:
    shutil.move(path, out / path.name)
    path.symlink_to(out / path.name)


@pytest.mark.parametrize("name", PLACES)
def test_a_damaged_folder_is_answered_in_one_line(name: str, good: Path, tmp_path: Path) -> None:
    damage, expected = PLACES[name]
    (tmp_path / "out").mkdir()
    shutil.copytree(good, tmp_path / "some")
    damage(tmp_path / "some" / "data", tmp_path / "out")
    with pytest.raises(UsageError, match=expected) as caught:
        storage.read(tmp_path / "some")
    assert str(tmp_path / "some") in str(caught.value) and "\n" not in str(caught.value)


def test_what_was_changed_since_it_was_recorded_is_rejected(tmp_path: Path) -> None:
    storage.write(tmp_path / "some", _ours())
    _edit(tmp_path / "some", _replaced("rewards", lambda shape, dtype: np.ones(shape, dtype)))
    with pytest.raises(UsageError, match="the checksum does not fit the content"):
        storage.read(tmp_path / "some")


def test_an_older_layout_is_read(good: Path, tmp_path: Path) -> None:
    """Minari 0.4: float64, whole numbers of other sizes, raw images, attributes in the file, none of the later keys."""
    shutil.copytree(good, tmp_path / "some")

    def age(metadata: dict[str, Any], data: h5py.File) -> None:
        for key in ("jpeg_encoding", "description", "algorithm_name"):
            metadata.pop(key)
        metadata["minari_version"] = "0.4.3"
        data.attrs["total_episodes"] = np.int64(3)
        _replaced("actions", lambda shape, _: np.ones(shape, ">i2"))(metadata, data)
        _replaced("rewards", lambda shape, _: np.ones(shape, np.float64))(metadata, data)
        del data["episode_0/infos"]

    before = storage.read(good)
    _edit(tmp_path / "some", age)
    found = storage.read(tmp_path / "some").episodes[0]
    assert found.actions.dtype == np.int64 and (found.actions == 1).all()
    assert found.rewards.dtype == np.float32 and (found.rewards == 1).all()
    assert len(found) == len(before.episodes[0])
