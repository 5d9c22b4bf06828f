"""How a run is spoken of."""

from __future__ import annotations

import shlex
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import OmegaConf

from rlexp.config.compose import compose
from rlexp.config.paths import resolved
from rlexp.runs.callbacks.progress import Progress
from rlexp.runs.folder import write_record
from rlexp.runs.messages import effort, finished_line, summary
from rlexp.system import terminal


@pytest.mark.parametrize(
    ("env", "row", "said"),
    [
        ("gym", {"n": 20}, "return 3.00 ± 1.00 over 20 episodes"),
        ("gym", {"n": 1}, "return 3.00 over 1 episode"),
        ("minigrid", {"n": 2, "success_rate": 0.5}, "success rate 50.0%, return 3.00 over 2 episodes"),
        (
            "restaurant",
            {"n": 500, "success_rate": 0.953, "system_turns_mean": 6.24},
            "success rate 95.3%, 6.2 turns, return 3.00 over 500 dialogues",
        ),
        (
            "datacenter",
            {"n": 1, "power_kw_mean": 112.34, "comfort_mean": 0.931},
            "112.3 kW, comfort 93.1% of the time, return 3.00 over 1 episode",
        ),
    ],
)
def test_the_environments_own_figures_come_first(env: str, row: dict[str, Any], said: str) -> None:
    assert summary({"return_mean": 3.0, "return_std": 1.0, **row}, env) == said


def test_a_path_can_be_pasted(tmp_path: Path) -> None:
    folder = tmp_path / "my runs"
    folder.mkdir()
    record = {"status": "finished", "seed": 0, "attempts": 1, "wandb_id": "x", "evaluation": None}
    write_record(folder, record)
    cfg = compose(["algo=random", "env=CartPole-v1", "total_timesteps=1", "evaluation.episodes=3"])
    stored = cfg.copy()
    stored.evaluation.episodes = 2
    (folder / "config.yaml").write_text(OmegaConf.to_yaml(OmegaConf.create(resolved(stored))))
    lines = str(finished_line(folder, cfg)).splitlines()
    assert lines[1] == f"'{folder}'"
    assert shlex.split(lines[3])[:3] == ["rlexp", "evaluate", str(folder)]


def test_effort() -> None:
    record = {"train_s": 20.0, "timesteps": 6000, "episodes": 40}
    assert effort(record, "restaurant") == "6,000 steps, 40 dialogues in 20.0 s, 300 steps/s"
    assert effort({"train_s": 0.0}, "gym") is None


def progress(evaluated: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch, **model: Any) -> str:
    """What stands beside the bar after 500 steps in two seconds."""
    budget: Any = SimpleNamespace(total_episodes=None, episodes=3)
    shown = Progress(terminal.console(), budget, SimpleNamespace(last=evaluated), 1000, "episode")  # type: ignore[arg-type]
    shown.model = SimpleNamespace(**{"ep_info_buffer": deque(), "ep_success_buffer": deque(), **model})  # type: ignore[assignment]
    monkeypatch.setattr("rlexp.runs.callbacks.progress.time.monotonic", lambda: 10.0)
    shown._on_training_start()
    shown.close()
    monkeypatch.setattr("rlexp.runs.callbacks.progress.time.monotonic", lambda: 12.0)
    shown.num_timesteps = 500
    return shown._note()


def test_progress_shows_speed_and_result(monkeypatch: pytest.MonkeyPatch) -> None:
    returns = deque([{"r": 1.0}, {"r": 2.0}])
    assert progress(None, monkeypatch) == "250 steps/s"
    assert progress(None, monkeypatch, ep_info_buffer=returns) == "250 steps/s  training return 1.5"
    rate = progress(None, monkeypatch, ep_info_buffer=returns, ep_success_buffer=deque([1.0, 0.0]))
    assert rate == "250 steps/s  training success 50.0%"
    assert progress({"return_mean": 7.0}, monkeypatch) == "250 steps/s  return 7.0"
    assert progress({"return_mean": 7.0, "success_rate": 0.9}, monkeypatch) == "250 steps/s  success 90.0%"
