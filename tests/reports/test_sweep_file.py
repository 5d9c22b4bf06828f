"""Sweep files: what is read and what is rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlexp.errors import UsageError
from rlexp.reports import sweep_file
from rlexp.reports.definition import Sweep

GOOD = "seeds: 0-1\nruns:\n  - {label: A, overrides: [algo=ppo]}\n"


def load(tmp_path: Path, text: str) -> Sweep:
    (tmp_path / "mine.yaml").write_text(text)
    return sweep_file.load("mine", tmp_path)


@pytest.mark.parametrize(
    ("given", "seeds"),
    [
        ("100-102", (100, 101, 102)),
        ("0,5,7-8", (0, 5, 7, 8)),
        ([1, 2], (1, 2)),
        (0, (0,)),
        (["0-1", 4], (0, 1, 4)),
    ],
)
def test_seeds(given: object, seeds: tuple[int, ...]) -> None:
    assert sweep_file.parse_seeds(given) == seeds


@pytest.mark.parametrize("given", ["", "a", "3-1", "1,1", "-1", "1.5", []])
def test_bad_seeds(given: object) -> None:
    with pytest.raises(UsageError, match="seeds"):
        sweep_file.parse_seeds(given)


def test_grid_multiplies_rows(tmp_path: Path) -> None:
    sweep = load(tmp_path, GOOD + "grid: {algo.learning_rate: [1e-4, 0.001], env/benchmark: [env1, env2]}\n")
    assert [row.label for row in sweep.rows][:2] == [
        "A, algo.learning_rate=0.0001, env1",
        "A, algo.learning_rate=0.0001, env2",
    ]
    assert sweep.rows[3].overrides == ("algo=ppo", "algo.learning_rate=0.001", "env/benchmark=env2")


def test_grid_alone(tmp_path: Path) -> None:
    sweep = load(tmp_path, "seeds: 0\ncommon: [algo=ppo]\ngrid: {algo.n_steps: [50, null], algo.x: [true]}\n")
    assert [row.overrides for row in sweep.rows] == [
        ("algo=ppo", "algo.n_steps=50", "algo.x=true"),
        ("algo=ppo", "algo.n_steps=null", "algo.x=true"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "cannot be read"),
        ("- 1\n", "keys and values"),
        (GOOD + "tabel: {}\n", "did you mean 'table'"),
        ("seeds: 0\n", "needs seeds"),
        (GOOD + "runs_of: mine\n", "names the file itself"),
        (GOOD + "runs_of: other\n", "remove runs, seeds"),
        ("seeds: 0\nruns: [{label: A, override: []}]\n", "unknown key 'override'"),
        ("seeds: 0\nruns: [{label: A}, {label: A}]\n", "its own label"),
        ("seeds: 0\nruns: [{label: A, overrides: [seed=3]}]\n", "is not allowed"),
        ("seeds: 0\nruns: [{label: A, overrides: [force=true]}]\n", "is not allowed"),
        ("seeds: 0\nruns: [{label: A, overrides: [algo]}]\n", "is not allowed"),
        ("seeds: 0\nruns: [{label: A, paper: {x: often}}]\n", "paper value"),
        (GOOD + "table: {columns: [{name: a, label: b, metric: c, unit: km}]}\n", "unit: 'km'"),
        (GOOD + "table: {columns: [{name: a, label: b}]}\n", "metric"),
        (GOOD + "table: {columns: [{name: a, label: b, metric: c, beter: d}]}\n", "did you mean 'better'"),
        (GOOD + "table: {catch_up: [{of: A, reaches: A}]}\n", "'catch_up' is now called 'sample_efficiency'"),
        (GOOD + "figure: {catch_up: []}\n", "'catch_up' is now called 'sample_efficiency'"),
        (GOOD + "table: {across: {tasks: []}}\n", "'across' is now called 'aggregate'"),
        (GOOD + "table: {columns: [{name: a, of: record}]}\n", "column: 'of' is now called 'source'"),
        (GOOD + "table: {columns: [{name: a, until: 0.8}]}\n", "column: 'until' is now called 'threshold'"),
        (
            GOOD + "table: {columns: [{name: a, judged: false}]}\n",
            "column: 'judged' is now called 'comparable'",
        ),
        (GOOD + "table: {column: []}\n", "table: unknown key 'column'; did you mean 'columns'"),
        (GOOD + "table: [1]\n", "table holds keys and values"),
        (GOOD + "table: {contrasts: [{of: A, minus: C, columns: []}]}\n", "no row is called 'C'"),
        (GOOD + "table: {contrasts: [{of: A, minus: A, columns: [x]}]}\n", "no column is called 'x'"),
        (GOOD + "figure: {panels: [{title: t, metric: m, rows: [B]}]}\n", "no row is called 'B'"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "other.yaml").write_text(GOOD)
    with pytest.raises(UsageError) as caught:
        load(tmp_path, text)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_unknown_name_and_path(tmp_path: Path) -> None:
    load(tmp_path, GOOD)
    with pytest.raises(UsageError, match="did you mean 'mine'"):
        sweep_file.load("mein", tmp_path)
    assert sweep_file.load(str(tmp_path / "mine.yaml")).name == "mine"


def test_shipped_files_are_sound() -> None:
    names = sweep_file.available()
    assert {
        "table1",
        "table2",
        "figure4",
        "figure5",
        "lcpo_envs",
        "lcpo_learning_rate",
        "ppo_entropy",
    } <= set(names)
    for name in names:
        sweep = sweep_file.load(name)
        assert sweep.rows and sweep.title
    table1 = sweep_file.load("table1")
    assert table1.seeds == tuple(range(110, 120)) and [row.label for row in table1.rows] == [
        "PPO",
        "PPO, tuned for the end",
        "PPO, tuned for the mean",
        "TAM",
        "LCPO",
    ]
    assert table1.row("LCPO").paper["success_200"] == (76.0, 2.9)
    assert sweep_file.load("figure4").rows == table1.rows
    assert len(sweep_file.load("lcpo_envs").rows) == 20
