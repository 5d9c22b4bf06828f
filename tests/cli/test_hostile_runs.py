"""Damaged run folders and those of somebody else: one line each, nothing executed, nothing followed, no hang."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch as th

from rlexp import cli
from rlexp.demonstrations import storage
from tests.conftest import CARTPOLE, only_run

_SECONDS = 20.0  # on a machine that does other things, too; a hang lasts for ever


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    top = tmp_path_factory.mktemp("trained")
    arguments = (*CARTPOLE, "total_timesteps=64", "evaluation.every_timesteps=32", "algo.n_steps=32")
    assert cli.main([*arguments, "algo.batch_size=32", f"output_dir={top / 'outputs'}"]) == 0
    return only_run(top)


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, found as ``output_dir=<tmp_path>/outputs``."""
    target = tmp_path / "outputs" / trained.relative_to(trained.parents[4])
    shutil.copytree(trained, target, symlinks=True)
    return target


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


class Answer:
    """What a command line said and how it ended."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        capsys.readouterr()
        began = time.monotonic()
        self.code = cli.main(list(arguments))  # anything but a UsageError comes out here
        self.seconds = time.monotonic() - began
        self.out, self.err = capsys.readouterr()

    def is_one_line(self) -> str:
        assert self.code == 2, self.out + self.err
        (line,) = self.err.splitlines()
        assert line.startswith("rlexp: ") and "Traceback" not in line
        assert not any(ord(character) < 32 for character in line)
        assert self.seconds < _SECONDS
        return line


# ------------------------------------------------------------------------------------------------------------ weights


class _Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (Path.touch, (Path("executed"),))  # type: ignore[return-value]


def _rezip(
    path: Path, change: Callable[[dict[str, bytes]], Any], compression: int = zipfile.ZIP_STORED
) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def _policy(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def edit(members: dict[str, bytes]) -> None:
        state = th.load(io.BytesIO(members["policy.pth"]), weights_only=True)
        state = change(state)
        file = io.BytesIO()
        th.save(state, file)
        members["policy.pth"] = file.getvalue()

    return lambda path: _rezip(path, edit)


def _bomb(members: dict[str, bytes]) -> None:
    members["policy.pth"] = bytes(200 << 20)


def _inner_bomb(members: dict[str, bytes]) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/0", bytes(200 << 20))
    members["policy.pth"] = file.getvalue()


def _pickled_by_hand(members: dict[str, bytes]) -> None:
    """As torch's archives are, but with a protocol of which torch warns."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(_Evil(), protocol=4))
        archive.writestr("archive/version", "3\n")
    members["policy.pth"] = file.getvalue()


def _lie_about_sizes(path: Path) -> None:
    content = bytearray(path.read_bytes())
    entry = content.rfind(b"PK\x01\x02")
    content[entry + 20 : entry + 28] = b"\xf0\xff\xff\x7f" * 2
    path.write_bytes(content)


def _fill(value: float) -> Callable[[dict[str, Any]], Any]:
    return lambda state: {key: tensor.fill_(value) for key, tensor in state.items()}


ARCHIVES: dict[str, Callable[[Path], Any]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "no archive": lambda path: path.write_bytes(b"PK no, not at all" * 100),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-200]),
    "a quarter": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 4]),
    "flipped": lambda path: path.write_bytes(
        (lambda content: content[:2000] + bytes([content[2000] ^ 255]) + content[2001:])(path.read_bytes())
    ),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "bomb": lambda path: _rezip(path, _bomb, zipfile.ZIP_DEFLATED),
    "inner bomb": lambda path: _rezip(path, _inner_bomb),
    "sizes that lie": _lie_about_sizes,
    "no weights": lambda path: _rezip(path, lambda members: members.pop("policy.pth")),
    "no attributes": lambda path: _rezip(path, lambda members: members.pop("data")),
    "attributes no JSON": lambda path: _rezip(path, lambda members: members.update(data=b"{" * 9999)),
    "attributes deep": lambda path: _rezip(path, lambda members: members.update(data=b"[" * 99999)),
    "leaves the folder": lambda path: _rezip(path, lambda m: m.update({"../../evil.pth": m["policy.pth"]})),
    "pickled weights": lambda path: _rezip(path, lambda m: m.update({"policy.pth": pickle.dumps(_Evil())})),
    "pickled by hand": lambda path: _rezip(path, _pickled_by_hand),
    "code in weights": _policy(lambda state: {**state, "x": _Evil()}),
    "weights a list": _policy(lambda state: [1, 2]),
    "weights numbers": _policy(lambda state: dict.fromkeys(state, 1.0)),
    "other shapes": _policy(lambda state: {key: value[:1] for key, value in state.items()}),
    "other names": _policy(lambda state: {f"x{key}": value for key, value in state.items()}),
    "not a number": _policy(_fill(float("nan"))),
    "infinite": _policy(_fill(float("inf"))),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_damaged_weights(
    name: str,
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    recwarn: pytest.WarningsRecorder,
) -> None:
    monkeypatch.chdir(tmp_path)
    ARCHIVES[name](run / "model.zip")
    recwarn.clear()
    line = Answer(capsys, "evaluate", str(run), "evaluation.episodes=1").is_one_line()
    assert "model.zip" in line
    assert not [warning for warning in recwarn if "pickle" in str(warning.message)], "more than one line"
    assert not (tmp_path / "executed").exists()
    if name in ("bomb", "truncated"):
        Answer(capsys, "demos", f"expert={run}", "episodes=1", "output=x.npz").is_one_line()


# ------------------------------------------------------------------------------------------------------------- config

_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(97 + k)}: &{chr(97 + k)} [{','.join(['*' + chr(96 + k)] * 9)}]\n" for k in range(1, 9)
)
CONFIGS: dict[str, Callable[[str], str]] = {
    "empty": lambda text: "",
    "binary": lambda text: "\x00\x01\x02",
    "unclosed": lambda text: text + "x: [",
    "a list": lambda text: "- 1\n",
    "a tag": lambda text: text + "x: !!python/object/apply:os.system ['touch executed']\n",
    "alias bomb": lambda text: _BOMB + text,
    "recursive": lambda text: text + "x: &x [*x]\n",
    "interpolation": lambda text: text.replace("name: null", "name: ${oc.env:HOME}"),
    "deep": lambda text: text + "x: " + "[" * 9999 + "]" * 9999,
    "wide": lambda text: text + "x: [" + "1," * 30000 + "]",
    "long": lambda text: text + "x: " + "y" * 10_000_000,
    "seed a text": lambda text: text.replace("seed: 0\n", "seed: zero\n", 1),
    "no algorithm": lambda text: text.replace("algo:\n", "alga:\n"),
    "algorithm a number": lambda text: text.replace("algo:\n", "algo: 3\nalga:\n"),
    "unknown algorithm": lambda text: text.replace("name: ppo", "name: '[/red]'"),
    "episodes a text": lambda text: text.replace("episodes: 2", "episodes: many"),
    "steps a text": lambda text: text.replace("n_steps: 32", "n_steps: many"),
    "network a text": lambda text: text.replace("ReLU", "__import__").replace("Tanh", "__import__"),
    "unknown task": lambda text: text.replace("CartPole-v1", "CartPole-v999"),
    "task a list": lambda text: text.replace("CartPole-v1", "[1]"),
    "module of Python's own": lambda text: text.replace("CartPole-v1", "antigravity:CartPole-v1"),
    "twice": lambda text: text + text,
    "arguments nobody takes": lambda text: text.replace("kwargs: {}", "kwargs: {x: 1}"),
}


def _write_config(run: Path, text: str) -> None:
    """Change a config as somebody would who knows of its checksum."""
    (run / "config.yaml").write_text(text)
    entry = json.loads((run / "record.json").read_text())
    del entry["config_sha256"]
    (run / "record.json").write_text(json.dumps(entry))


def test_a_changed_config_is_not_evaluated(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / "config.yaml"
    path.write_text(path.read_text().replace("seed: 0", "seed: 1"))
    line = Answer(capsys, "evaluate", str(run), "evaluation.episodes=1").is_one_line()
    assert "config.yaml is not the one that this run was made with" in line


@pytest.mark.parametrize("path", ["a\0b", "x" * 300], ids=["NUL", "long"])
@pytest.mark.parametrize("command", [("evaluate",), ("report", "run")])
def test_a_path_that_cannot_be_one(
    command: tuple[str, ...], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no run here" in Answer(capsys, *command, path).is_one_line()


@pytest.mark.parametrize("name", CONFIGS)
def test_damaged_config(
    name: str,
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = run / "config.yaml"
    before = path.read_text()
    _write_config(run, CONFIGS[name](before))
    assert path.read_text() != before
    Answer(capsys, "evaluate", str(run), "evaluation.episodes=1").is_one_line()
    assert not (tmp_path / "executed").exists() and "antigravity" not in sys.modules
    if name in ("a tag", "alias bomb", "deep", "seed a text", "no algorithm"):
        answer = Answer(capsys, "report", "sweep", str(tmp_path / "outputs"))
        assert "none of these runs is finished" in answer.is_one_line()


@pytest.mark.parametrize(
    "name", ["binary", "a tag", "alias bomb", "deep", "long", "no algorithm", "seed a text", "twice"]
)
def test_damaged_config_of_a_run_that_would_be_resumed(
    name: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = json.loads((run / "record.json").read_text())
    (run / "record.json").write_text(json.dumps({**entry, "status": "interrupted"}))
    path = run / "config.yaml"
    path.write_text(CONFIGS[name](path.read_text()))
    line = Answer(capsys, *entry["overrides"], f"output_dir={tmp_path / 'outputs'}").is_one_line()
    assert "config.yaml" in line and "force=true" in line


@pytest.mark.parametrize(
    "reported",
    [[1], {"episodes": "x"}, {"return_mean": "x"}, {"return_mean": 10**400}, {"success_rate": "x"}],
)
def test_damaged_demonstrations_are_listed(
    reported: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:

    good = {"task": _NASTY, "expert": {"kind": _NASTY}, "episodes": 1, "steps": 1, "return_mean": 1.0}
    header = {"provenance": {**good, **reported} if isinstance(reported, dict) else reported}
    monkeypatch.setattr(storage, "read_header", lambda _: header)
    (tmp_path / "demonstrations").mkdir()
    (tmp_path / "demonstrations" / "x.npz").touch()
    answer = Answer(capsys, "list", "demos", f"output_dir={tmp_path}")
    assert answer.code == 0 and "\x1b" not in answer.out, answer.err


# ------------------------------------------------------------------------------------------------- records and rows

_NASTY = "[/red][link=x]\x1b]0;owned\x07\x1b[31m\u202e"
RECORDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "evaluation a list": lambda entry: {**entry, "evaluation": [1]},
    "evaluation a number": lambda entry: {**entry, "evaluation": 7},
    "evaluation a text": lambda entry: {**entry, "evaluation": _NASTY},
    "evaluation of texts": lambda entry: {**entry, "evaluation": {"return_mean": _NASTY}},
    "evaluation incomplete": lambda entry: {**entry, "evaluation": {"success_rate": 1.0}},
    "evaluation too large": lambda entry: {**entry, "evaluation": {**entry["evaluation"], "n": 10**400}},
    "a list": lambda entry: [entry],
    "a text": lambda entry: _NASTY,
    "status unknown": lambda entry: {**entry, "status": _NASTY},
    "status a list": lambda entry: {**entry, "status": [1]},
    "attempts a text": lambda entry: {**entry, "attempts": "x"},
    "seed null": lambda entry: {**entry, "seed": None},
    "seconds a text": lambda entry: {**entry, "wall_s": _NASTY},
    "steps a list": lambda entry: {**entry, "timesteps": [_NASTY]},
    "overrides a text": lambda entry: {**entry, "overrides": "x"},
    "first episode a list": lambda entry: {**entry, "first_episode": [1]},
    "task a number": lambda entry: {**entry, "env": 1},
}
TEXTS: dict[str, Callable[[str], str]] = {
    **{
        name: lambda text, change=change: json.dumps(change(json.loads(text)))
        for name, change in RECORDS.items()
    },
    "not a number": lambda text: text.replace('"wall_s": ', '"cpu_x": NaN, "wall_s": '),
    "infinite": lambda text: text.replace('"wall_s": ', '"cpu_x": 1e999, "wall_s": '),
    "deep": lambda text: text.replace('"wall_s": ', f'"x": {"[" * 10000}{"]" * 10000}, "wall_s": '),
    "many digits": lambda text: text.replace('"seed": 0', f'"seed": {"9" * 6000}'),
    "binary": lambda text: "\x00\xff",
}


@pytest.mark.parametrize("name", TEXTS)
def test_damaged_record(name: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = run.parent / "seed=1"
    shutil.copytree(run, good)
    path = run / "record.json"
    before = path.read_text()
    path.write_text(TEXTS[name](before))
    assert path.read_text() != before
    for arguments in (
        ("evaluate", str(run)),
        ("report", "run", str(run)),
        ("demos", f"expert={run}", "episodes=1"),
    ):
        assert "record.json" in Answer(capsys, *arguments).is_one_line()
    listed = Answer(capsys, "list", "runs", f"output_dir={tmp_path / 'outputs'}")
    assert listed.code == 0, listed.err
    assert [line.split()[1] for line in listed.out.splitlines() if "seed=" in line] == ["damaged", "finished"]
    assert "\x1b" not in listed.out
    compared = Answer(capsys, "report", "sweep", str(tmp_path / "outputs"))
    assert compared.code == 0 and "left out: " in compared.out, compared.err


def test_texts_of_a_record_are_shown_inert(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run / "record.json"
    entry = json.loads(path.read_text())
    path.write_text(json.dumps({**entry, "algo": _NASTY + "$\\frac$", "env": _NASTY, "error": _NASTY}))
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("name: gym", 'name: "[/red]\\e[31m$x_{$"'))
    other = run.parent / "seed=1"
    shutil.copytree(run, other)
    (other / "config.yaml").write_text(config.read_text().replace("seed: 0", "seed: 1").replace("x_{", "y_{"))
    strange = run.parents[3] / "a[bold]\x1b[31m" / "b" / "c" / "seed=3"
    shutil.copytree(run, strange)
    for arguments in (
        ("list", "runs", f"output_dir={tmp_path / 'outputs'}"),
        ("report", "run", str(run)),
        ("report", "sweep", str(tmp_path / "outputs")),
    ):
        answer = Answer(capsys, *arguments)
        assert answer.code == 0, answer.err
        assert "\x1b" not in answer.out + answer.err and "\u202e" not in answer.out


ROWS: dict[str, str] = {
    "no JSON": "{\n{}\n",
    "lists": "[1]\n",
    "texts": '{"episodes": "x", "timesteps": 1, "return_mean": 1}\n',
    "no position": '{"return_mean": 1.0}\n',
    "not a number": '{"episodes": 1, "timesteps": 1, "return_mean": NaN}\n',
    "too large": '{"episodes": 1, "timesteps": 1e999, "return_mean": 1}\n',
    "deep": "[" * 10000 + "\n",
}


@pytest.mark.parametrize("name", ROWS)
def test_damaged_evaluations(
    name: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "evaluations.jsonl").write_text(ROWS[name])
    assert "evaluations.jsonl" in Answer(capsys, "report", "run", str(run)).is_one_line()
    Answer(capsys, "report", "sweep", str(tmp_path / "outputs")).is_one_line()


# -------------------------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize(
    "link", ["record.json", "model.zip", "evaluated.jsonl", "checkpoints", "wandb", ".lock"]
)
def test_a_run_with_links_is_rejected_by_every_command(
    link: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top = tmp_path / "outputs"
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / ".hidden").mkdir()
    if (run / link).is_dir():
        shutil.rmtree(run / link)
    else:
        (run / link).unlink(missing_ok=True)
    (run / link).symlink_to(victim)
    overrides = json.loads((run / "record.json").read_text())["overrides"] if link != "record.json" else []
    for arguments in (
        ("evaluate", str(run)),
        ("report", "run", str(run)),
        ("report", "sweep", str(top)),
        ("demos", f"expert={run}", "episodes=1"),
        *([[*overrides, f"output_dir={top}"]] if overrides else []),
    ):
        line = Answer(capsys, *arguments).is_one_line()
        assert f"{link} is a link" in line or arguments[:2] == ("report", "sweep")
    listed = Answer(capsys, "list", "runs", f"output_dir={top}")
    assert listed.code == 0 and "damaged" in listed.out
    assert sorted(path.name for path in victim.rglob("*")) == [".hidden"]


# ---------------------------------------------------------------------------------------------------------- imports

_MODULE = """
from pathlib import Path

import gymnasium

Path(__file__).with_name("executed").touch()
gymnasium.register("Evil-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv")
"""


@pytest.fixture
def evil(run: Path) -> Path:
    """A run folder that provides the module which its config names."""
    (run / "evilmod.py").write_text(_MODULE)
    for name in ("omegaconf", "yaml", "difflib", "rlexp_plugin", "wandb"):
        (run / f"{name}.py").write_text(
            "from pathlib import Path\nPath(__file__).with_name('executed').touch()\n"
        )
    _write_config(run, (run / "config.yaml").read_text().replace("CartPole-v1", "evilmod:Evil-v0"))
    return run


def test_no_module_of_a_run_folder_is_imported(evil: Path, fresh_rlexp: Any) -> None:
    result = fresh_rlexp("evaluate", ".", "evaluation.episodes=1", cwd=evil)
    assert result.returncode == 2 and "evilmod" in result.stderr, result.stderr
    assert "env.id=evilmod:Evil-v0" in result.stderr  # what to type
    assert not (evil / "executed").exists()


def test_what_is_typed_is_imported(
    evil: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(evil)
    answer = Answer(capsys, "evaluate", ".", "evaluation.episodes=1", "env.id=evilmod:Evil-v0")
    assert answer.code == 0, answer.err
    assert (evil / "executed").exists()


def test_a_task_of_ones_own_lies_in_the_current_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ownmod.py").write_text(_MODULE.replace("Evil", "Own"))
    monkeypatch.chdir(tmp_path)
    arguments = ("algo=random", "env=gym", "total_timesteps=1", "logger=none", "evaluation.episodes=1")
    answer = Answer(capsys, *arguments, "env.id=ownmod:Own-v0")
    assert answer.code == 0, answer.err
    assert (tmp_path / "executed").exists()
