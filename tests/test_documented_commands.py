"""Every command that README, help texts, docstrings, YAML headers and messages print does what they say.

A command is executed as it is printed, in one folder that all of them share, with these cuts:

* placeholders (``RUN``, ``DIR``, ``NAME``, ``FILE``, ``...``) stand for a run and a multirun that are trained first;
* budgets: ``CUT`` is appended to what trains, ``--dry-run`` to sweeps, ``SHORT`` to what measures; of a range of seeds
  two are run;
* a sweep is planned with its first twelve rows; what a row composes to is kept for the report on it;
* blocks under ``<!-- not run: REASON -->`` are left out, and the tutorial, which runs as it stands (``tests/docs``);
* files that a page shows (``title="corridor.py"``) are written into the folder first, and run where a page says so;
* ``rlexp report cliffwalk`` measures chains of three states; a run on Ray is validated, not started;
* ``make`` only says what it would do (``make -n``).
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlexp.cli.app import main, parser
from rlexp.cli.catalogue import COMMANDS as SUBCOMMANDS
from rlexp.config import compose as composing
from rlexp.reports import sweep_file
from rlexp.reports.definition import Sweep
from rlexp.sweep import plan

TOP = Path(__file__).parents[1]
TUTORIAL = TOP / "docs" / "tutorial.md"
PAGES = [path for path in sorted((TOP / "docs").glob("**/*.md")) if path != TUTORIAL]
DOCUMENTS = [TOP / "README.md", TOP / "CONTRIBUTING.md", *PAGES]
NOT_RUN = r"<!-- not run: [^>]+ -->\n```.*?```"
YAML = [*sorted((TOP / "conf").glob("**/*.yaml")), *sorted((TOP / "sweeps").glob("*.yaml"))]
SOURCES = sorted((TOP / "rlexp").glob("**/*.py"))

CUT = ("total_timesteps=20", "total_episodes=1", "evaluation.episodes=1", "evaluation.n_envs=1")
ATARI = ("env=atari", "env=pong", "env=qbert", "env=space_invaders")  # one game lasts up to 108,000 frames
SHORT = {
    "demos": ["episodes=1", "force=true"],
    "evaluate": ["evaluation.episodes=1"],
    "restaurant_fidelity": ["tables=1", "dialogues=2"],
    "datacenter_fidelity": ["days=1"],
}
# What stands for a value of the reader's own; the order matters.
PLACEHOLDERS = (
    (r"\[[^\]]*\]", ""),  # may be left out
    (r"\bCOMMAND\b", "sweep"),
    (r"expert=bot\|RUN", "expert=bot"),
    (r"outputs/runs/[^ ]*(\.\.\.|<variant>/seed=\d+)", "RUN"),
    (r"outputs/multirun/\.\.\.", "DIR"),
    (r"\balgo=\.\.\.", "algo=random"),
    (r"\benv=\.\.\.", "env=unlock_pickup"),
    (r"\bepisodes=\.\.\.", "episodes=1"),
    (r"\boutput_dir=\.\.\.", "output_dir=outputs"),
    (r"\bNAME\b", "table1"),
)
# Parts of sentences, not commands: the name of a command, or of the program.
NAMES = {
    *(f"rlexp {name}" for name in SUBCOMMANDS if name not in ("list", "sweep", "report")),
    "rlexp -m",
    "rlexp",
}


def printed() -> dict[str, str]:
    """Commands, and where each is printed."""
    found: dict[str, str] = {}
    for where, text in texts():
        for command in re.split(r"\s*(?:;|&&)\s*", " ".join(text.split())):
            for pattern, replacement in PLACEHOLDERS:
                command = re.sub(pattern, replacement, command)
            command = " ".join(command.removeprefix(".venv/bin/").rstrip(".,:").split())
            if command.startswith(("rlexp ", "make ")) and command not in NAMES:
                found.setdefault(command, where)
    return found


def texts() -> Iterator[tuple[str, str]]:
    for path in DOCUMENTS:
        yield from in_markdown(path)
    for path in YAML:
        yield from in_comments(path)
    for path in SOURCES:
        yield from in_source(path)
    for name in ("", *SUBCOMMANDS):
        _, _, text = help_of(name).partition("\n\n")  # without the usage
        for command in re.findall(r"(rlexp [^\n\"]+?)(?=\s{2,}|\n|\"|\)| shows )", text):
            yield " ".join(f"rlexp {name} --help".split()), command


def in_markdown(path: Path) -> Iterator[tuple[str, str]]:
    text = re.sub(NOT_RUN, "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            yield path.name, line.split(" #")[0]
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for span in re.findall(r"`([^`]+)`", prose):
        yield path.name, span


def files_shown() -> Iterator[tuple[str, str]]:
    """Files that pages show in full, with their names."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        yield from re.findall(r'```\w+ title="([\w.]+)"\n(.*?)```', text, re.DOTALL)


def scripts_run() -> Iterator[str]:
    """Scripts that pages show and run."""
    for path in PAGES:
        yield from re.findall(r"^python ([\w.]+\.py)$", path.read_text(encoding="utf-8"), re.MULTILINE)


def in_comments(path: Path) -> Iterator[tuple[str, str]]:
    comments = "\n".join(re.findall(r"#\s*(.*)", path.read_text(encoding="utf-8")))
    for span in re.findall(r"`([^`]+)`", comments):
        yield path.name, span
    for line in re.sub(r"`[^`]+`", "", comments).splitlines():
        command = re.search(r"(?:^|: )(rlexp \S+=.*|rlexp list \w+)$", line)
        if command:
            yield path.name, command[1]


def in_source(path: Path) -> Iterator[tuple[str, str]]:
    source, where = path.read_text(encoding="utf-8"), str(path.relative_to(TOP))
    for span in re.findall(r"``(rlexp [^`]+)``", source):
        yield where, span
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for command in re.findall(r"e\.g\. (rlexp [^\n]+)", node.value):
                yield where, command


def help_of(name: str) -> str:
    own = parser if not name else importlib.import_module(f"rlexp.cli.{name}").parser
    return own().format_help()


COMMANDS = printed()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The folder in which all of them are typed, and what is in it."""
    folder = tmp_path_factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("WANDB_MODE", "disabled")
        cartpole = ["algo=ppo", "env=CartPole-v1", "tuned=none", "algo.n_steps=16", "algo.batch_size=16"]
        assert main([*cartpole, *(word for word in CUT if "total_episodes" not in word)]) == 0
        (run,) = folder.glob("outputs/runs/gym-CartPole-v1/ppo/*/seed=0")
        assert main(["-m", "algo=random", "env=restaurant", "seed=0,1", "logger=none", *CUT]) == 0
        (multirun,) = folder.glob("outputs/multirun/*")
        demos = ["demos", "env=unlock_pickup", "expert=bot", "episodes=2", "output=unlock.npz", "force=true"]
        assert main(demos) == 0
        for name, content in files_shown():
            (folder / name).write_text(content, encoding="utf-8")
        for name in scripts_run():
            runpy.run_path(name)
        compose = functools.cache(lambda overrides: composing.compose(overrides))
        patch.setattr(plan, "_compose", lambda overrides: compose(tuple(overrides)).copy())
        yield {"RUN": str(run), "DIR": str(multirun)}


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("rlexp ")])
def test_does_what_it_says(
    shared: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    command: str,
) -> None:
    for name, path in shared.items():
        command = re.sub(rf"\b{name}\b", path, command)
    code = main(prepared(shlex.split(command)[1:], monkeypatch))
    shown = capfd.readouterr()
    if "rlexp sweep" in shown.err:  # a report in a folder where nothing is trained
        assert code == 2 and command.startswith("rlexp report")
        return
    assert code == (1 if "--strict" in command else 0), f"{COMMANDS.get(command)}: {shown.err or shown.out}"


def prepared(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arguments with budgets cut."""
    command = arguments[0] if arguments and arguments[0] in SUBCOMMANDS else "train"
    if any(option in arguments for option in ("--help", "--version", "--hydra-help", "-sc", "--cfg")):
        return arguments
    if command == "train" and arguments:
        if "hardware=ray" in arguments:
            from rlexp.cli import train

            monkeypatch.setattr(train, "_run_one", lambda *_: 0)
        cut = [*CUT, *([] if any(word.startswith("logger") for word in arguments) else ["logger=none"])]
        arguments = [re.sub(r"^seed=\d+-\d+$", "seed=0,1", word) for word in arguments]
        return [*arguments, *cut, *(["env.max_frames=200"] if set(arguments) & set(ATARI) else [])]
    if command == "resume":
        return [re.sub("^total_timesteps=.*", "total_timesteps=40", word) for word in arguments]
    if command == "sweep" and len(arguments) > 1:
        load = sweep_file.load
        monkeypatch.setattr(sweep_file, "load", lambda name: first_rows(load(name)))
        return [*arguments, *([] if "--dry-run" in arguments else ["--dry-run"])]
    if arguments[:2] == ["report", "cliffwalk"]:
        from rlexp.studies import cliffwalk

        measure = cliffwalk.measure
        monkeypatch.setattr(cliffwalk, "measure", lambda: measure(n_states=3, seeds=2))
    measured = arguments[1] if command == "report" and len(arguments) > 1 else ""
    short = SHORT.get(command, []) + SHORT.get(measured, [])
    return [*arguments, *short]


def first_rows(sweep: Sweep) -> sweep_file.Sweep:
    return dataclasses.replace(sweep, rows=sweep.rows[:12])


def test_a_command_on_a_page_has_a_budget() -> None:
    """Above, one is appended."""
    for command, where in COMMANDS.items():
        arguments = shlex.split(command)[1:]
        trains = arguments and "=" in arguments[0] and "--cfg" not in arguments
        if where.endswith(".md") and command.startswith("rlexp ") and trains:
            cfg = composing.compose(
                [word.replace("corridor:Corridor-v0", "CartPole-v1") for word in arguments]
            )
            assert cfg.total_timesteps or cfg.total_episodes, f"{where}: {command}"


def test_make_knows_every_target_that_is_named() -> None:
    targets = sorted(
        {word for command in COMMANDS if command.startswith("make ") for word in command.split()[1:]}
    )
    assert len(targets) > 15
    result = subprocess.run(["make", "-n", *targets], cwd=TOP, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_every_extra_that_is_named_exists() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for path in (*DOCUMENTS, *YAML, *SOURCES):
        for extra in re.findall(r"rlexp\[([\w,]+)\]", path.read_text(encoding="utf-8")):
            assert set(extra.split(",")) <= set(project["optional-dependencies"]), path


def test_the_commands_are_found() -> None:
    """The test above is only as good as what is found."""
    assert "rlexp -m algo=ppo,lcpo seed=0-4 hydra/launcher=joblib" in COMMANDS
    assert "rlexp acer" not in COMMANDS and len(COMMANDS) > 60


if __name__ == "__main__":  # lists them
    sys.stdout.write("\n".join(f"{where:40} {command}" for command, where in COMMANDS.items()) + "\n")
