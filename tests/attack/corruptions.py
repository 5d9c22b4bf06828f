"""Damaged files: what is resumed, evaluated or listed is as if nothing had happened, or rejected in one line."""

from __future__ import annotations

import functools
import io
import json
import os
import random
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.attack import judge, sandbox
from tests.attack.compare import differences

SECONDS = 120.0
_TASK = (
    "env=gym",
    "env.id=CartPole-v1",
    "tuned=none",
    "total_timesteps=96",
    "logger=none",
    "checkpoint.every_minutes=null",
)
_OFTEN = ("checkpoint.every_timesteps=16", "evaluation.episodes=2", "evaluation.every_timesteps=32")
_PPO = ("algo=ppo", "algo.n_steps=16", "algo.batch_size=16", "algo.n_epochs=1", "algo.net_arch=[8]")
_DQN = (
    "algo=dqn",
    "algo.learning_starts=8",
    "algo.batch_size=8",
    "algo.buffer_size=200",
    "algo.net_arch=[8]",
)
RUNS = {"ppo": (*_PPO, *_TASK, *_OFTEN), "dqn": (*_DQN, *_TASK, *_OFTEN)}

Damage = Callable[[Path, random.Random], None]


@dataclass(frozen=True)
class Case:
    """One damaged file and the command that meets it.

    :param base: key of :data:`RUNS`
    :param command: ``resume`` a killed run; ``evaluate``, ``report``, ``list`` or ``again`` a finished one; else the
        arguments themselves
    :param file: below the run folder; ``*`` is the newest checkpoint
    :param seed: decides which bytes are flipped
    """

    name: str
    base: str
    command: str | tuple[str, ...]
    file: str
    damage: Damage
    seed: int


# -------------------------------------------------------------------------------------------------------- damages


def _rewrite(change: Callable[[bytes, random.Random], bytes]) -> Damage:
    def damage(path: Path, generator: random.Random) -> None:
        path.write_bytes(change(path.read_bytes(), generator))

    return damage


def _flip(data: bytes, generator: random.Random) -> bytes:
    if not data:
        return b"\x01"
    place = generator.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << generator.randrange(8)]) + data[place + 1 :]


def _digit(data: bytes, generator: random.Random) -> bytes:
    places = [place for place, byte in enumerate(data) if byte in b"0123456789"] or [0]
    place = generator.choice(places)
    return data[:place] + (b"7" if data[place : place + 1] != b"7" else b"3") + data[place + 1 :]


def _linked(target: str) -> Damage:
    def damage(path: Path, _: random.Random) -> None:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        path.symlink_to(target)

    return damage


def _elsewhere(path: Path, _: random.Random) -> None:
    """The same content, but behind a link that leaves the run folder."""
    outside = next(parent for parent in path.parents if parent.name == "outputs").parent / "outside"
    shutil.move(path, outside)
    path.symlink_to(outside)


def _gone(path: Path, _: random.Random) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _a_folder(path: Path, generator: random.Random) -> None:
    _gone(path, generator)
    path.mkdir()


def _unreadable_pipe(path: Path, generator: random.Random) -> None:
    _gone(path, generator)
    os.mkfifo(path)


def _bomb(path: Path, _: random.Random) -> None:
    """A zip archive whose first member unpacks to a gigabyte."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("arrays.npy", "w") as member,
    ):
        for _ in range(64):
            member.write(bytes(1 << 22))


def _pickled(path: Path, _: random.Random) -> None:
    """An archive as torch's and numpy's are, with a pickle inside that leaves the canary."""
    import pickle

    class Touch:
        def __reduce__(self) -> Any:
            return os.system, (f"touch ../{sandbox.CANARY}",)

    inside = io.BytesIO()
    with zipfile.ZipFile(inside, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Touch()))
        archive.writestr("archive/version", "3\n")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            if name.endswith(".npy"):
                text = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
                head = b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + text + b"\n"
                archive.writestr(name, head + pickle.dumps(Touch()))
            else:
                archive.writestr(name, inside.getvalue() if name.endswith(".pth") else pickle.dumps(Touch()))


def _deep(open_: bytes, close: bytes) -> Damage:
    return _rewrite(lambda data, _: open_ * 100_000 + close * 100_000)


_ALIASES = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)

BYTES: dict[str, Damage] = {
    "flip": _rewrite(_flip),
    "flip again": _rewrite(_flip),
    "empty": _rewrite(lambda data, _: b""),
    "half": _rewrite(lambda data, _: data[: len(data) // 2]),
    "one byte short": _rewrite(lambda data, _: data[:-1]),
    "longer": _rewrite(lambda data, _: data + b"\0garbage\n"),
    "zeros": _rewrite(lambda data, _: bytes(len(data))),
    "noise": _rewrite(lambda data, generator: generator.randbytes(len(data))),
    "gone": _gone,
    "a folder": _a_folder,
    "a pipe": _unreadable_pipe,
    "a link to /dev/zero": _linked("/dev/zero"),
    "a link to nowhere": _linked("nowhere"),
    "a link to itself": lambda path, generator: _linked(path.name)(path, generator),
}
TEXT: dict[str, Damage] = {
    "another digit": _rewrite(_digit),
    "another digit again": _rewrite(_digit),
    "[]": _rewrite(lambda data, _: b"[]"),
    "null": _rewrite(lambda data, _: b"null\n"),
    "{}": _rewrite(lambda data, _: b"{}\n"),
    "NaN": _rewrite(lambda data, _: b"NaN\n"),
    "text": _rewrite(lambda data, _: b'"x"\n'),
    "no UTF-8": _rewrite(lambda data, _: b"\xff\xfe" + data),
    "escapes": _rewrite(
        lambda data, _: b'{"status": "finished", "algo": "\\u001b[2J[/red]", "error": "\x1b[2J"}\n'
    ),
    "deep": _deep(b"[", b"]"),
    "twice": _rewrite(lambda data, _: data + data),
    "one line less": _rewrite(lambda data, _: b"".join(data.splitlines(keepends=True)[:-1])),
    "first line gone": _rewrite(lambda data, _: b"".join(data.splitlines(keepends=True)[1:])),
}
YAML: dict[str, Damage] = {
    "a tag": _rewrite(lambda d, _: b"!!python/object/apply:os.system ['touch ../CANARY']\n"),
    "a tag inside": _rewrite(lambda d, _: d + b"x: !!python/object/apply:os.system ['touch ../CANARY']\n"),
    "aliases": _rewrite(lambda data, _: _ALIASES.encode()),
    "an interpolation": _rewrite(lambda data, _: data.replace(b"seed: 0", b"seed: ${nope}")),
    "another seed": _rewrite(lambda data, _: data.replace(b"seed: 0", b"seed: 1")),
    "another module": _rewrite(lambda data, _: data.replace(b"CartPole-v1", b"evil:CartPole-v1")),
}
ARCHIVE: dict[str, Damage] = {"a bomb": _bomb, "pickles": _pickled}


def cases(seed: int) -> list[Case]:
    """Return every case."""
    number = iter(range(seed * 100_000, (seed + 1) * 100_000))
    found: list[Case] = []

    def add(base: str, command: str, file: str, *damages: dict[str, Damage]) -> None:
        for name, damage in ((name, damage) for some in damages for name, damage in some.items()):
            found.append(Case(f"{base} {command} {file}: {name}", base, command, file, damage, next(number)))

    for base in RUNS:
        add(base, "resume", "checkpoints/*/state.json", BYTES, TEXT)
        add(base, "resume", "checkpoints/*/arrays.npz", BYTES, ARCHIVE)
    add("ppo", "resume", "metrics.jsonl", BYTES, TEXT)
    add("ppo", "resume", "evaluations.jsonl", BYTES, TEXT)
    add("ppo", "resume", "record.json", BYTES, TEXT)
    add("ppo", "resume", "config.yaml", BYTES, TEXT, YAML)
    few = {name: BYTES[name] for name in ("gone", "a folder", "a link to nowhere", "a link to /dev/zero")}
    add("dqn", "resume", "checkpoints", few, {"elsewhere": _elsewhere})
    add("dqn", "resume", "checkpoints/*", few, {"elsewhere": _elsewhere})
    for file in (
        "metrics.jsonl",
        "evaluations.jsonl",
        "record.json",
        "config.yaml",
        "checkpoints/*/state.json",
        ".lock",
    ):
        add("dqn", "resume", file, {"elsewhere": _elsewhere})
    add("ppo", "evaluate", "model.zip", BYTES, ARCHIVE, {"elsewhere": _elsewhere})
    add("ppo", "evaluate", "config.yaml", BYTES, YAML, {"deep": TEXT["deep"], "[]": TEXT["[]"]})
    add("ppo", "evaluate", "record.json", TEXT)
    add("ppo", "again", "record.json", BYTES, TEXT)
    for command in ("list", "report"):
        add("ppo", command, "record.json", BYTES, TEXT)
        add("ppo", command, "evaluations.jsonl", BYTES, TEXT)
    add("ppo", "report", "metrics.jsonl", TEXT)
    add("ppo", "report", "config.yaml", YAML)
    return found


# ----------------------------------------------------------------------------------------------------- the attack


@functools.cache
def _fixtures(top: Path, base: str) -> Path:
    """Train one run undisturbed and kill another in its middle; once per worker."""
    home = top / f"fixtures-{os.getpid()}" / base
    for name, setup in (("whole", None), ("killed", _die_after_three_checkpoints)):
        folder = home / name / "case"
        folder.mkdir(parents=True)
        result = sandbox.run(list(RUNS[base]), folder, 2 * SECONDS, setup)
        if result.code != (0 if setup is None else 137):
            raise RuntimeError(f"{base} {name}: exit code {result.code}: {result.err or result.out}")
    return home


def _die_after_three_checkpoints() -> None:
    from rlexp.runs.experiment import Experiment

    save = Experiment._save
    saved = 0

    def dying(self: Experiment) -> None:
        nonlocal saved
        save(self)
        saved += 1
        if saved == 3:
            os._exit(137)

    Experiment._save = dying  # type: ignore[method-assign]


def _only_run(folder: Path) -> Path:
    (found,) = folder.glob("outputs/runs/*/*/*/seed=0")
    return found


def _target(run: Path, file: str) -> Path:
    if "*" not in file:
        return run / file
    newest = max(path for path in (run / "checkpoints").iterdir() if path.name[0].isdigit())
    return run / file.replace("*", newest.name)


def _command(case: Case, run: Path) -> list[str]:
    if case.command in ("resume", "again"):
        return list(RUNS[case.base])
    arguments = {
        "evaluate": ["evaluate", str(run)],
        "report": ["report", "run", str(run)],
        "list": ["list", "runs"],
    }
    return arguments[str(case.command)]


def attack(case: Case, folder: Path) -> judge.Verdict:
    """Damage a copy of a run, give the command, compare with the undisturbed one."""
    home = _fixtures(folder.parents[1], case.base)
    whole = _only_run(home / "whole" / "case")
    source = home / ("killed" if case.command == "resume" else "whole") / "case"
    shutil.copytree(source, folder, symlinks=True, dirs_exist_ok=True)
    (folder / "evil.py").write_text(f"open('../{sandbox.CANARY}', 'w').close()\n")
    run = _only_run(folder)
    shutil.copy(folder / "evil.py", run / "evil.py") if case.command == "evaluate" else None
    target = _target(run, case.file)
    if not target.exists() and not target.is_symlink():
        target.touch()
    case.damage(target, random.Random(case.seed))
    outside = folder / "outside"
    before = (
        sandbox.snapshot(outside) if outside.is_dir() else outside.read_bytes() if outside.exists() else None
    )
    argv = _command(case, run.relative_to(folder))
    result = sandbox.run(argv, folder, SECONDS)
    broken = judge.judge(result, keeps_files=True)
    after = (
        sandbox.snapshot(outside) if outside.is_dir() else outside.read_bytes() if outside.exists() else None
    )
    if before != after:
        broken["file left"] = "what a link out of the run folder points to has changed"
    if result.code == 0 and case.command in ("resume", "again"):
        found = differences(whole, run)
        if found:
            broken["silent difference"] = "; ".join(found)[:200]
    if result.code == 0 and case.command == "evaluate":
        row, wanted = _last_row(run / "evaluated.jsonl"), _last_row(whole / "evaluations.jsonl")
        if row.get("return_mean") != wanted["return_mean"] or row.get("length_std") != wanted["length_std"]:
            broken["silent difference"] = (
                f"return {row.get('return_mean')} instead of {wanted['return_mean']}"
            )
    where = f"{case.name} (seed {case.seed}), then {judge.shell(argv)}"
    return judge.Verdict("corruptions", case.name, where, result.seconds, broken)


def _last_row(path: Path) -> dict[str, Any]:
    row = json.loads(path.read_text().splitlines()[-1])
    assert isinstance(row, dict)
    return row
