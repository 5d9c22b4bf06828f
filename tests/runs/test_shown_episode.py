"""An evaluation episode to be looked at: transcript or frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rlexp.config.compose import compose
from rlexp.runs.factories import make_model, make_training_env
from rlexp.runs.shown_episode import show_episode


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (("algo=handcrafted", "env=restaurant"), "episode.txt"),
        (("algo=random", "env=unlock_local"), "episode.gif"),
    ],
    ids=["transcript", "frames"],
)
def test_is_written_and_always_the_same(tmp_path: Path, overrides: tuple[str, ...], name: str) -> None:
    cfg = compose([*overrides, "total_timesteps=1", "logger=none"])
    env = make_training_env(cfg)
    model = make_model(cfg, env)
    before = np.random.get_state()[1].tolist()
    path = show_episode(cfg, model, 3, tmp_path)
    assert path == tmp_path / name and np.random.get_state()[1].tolist() == before
    content = path.read_bytes()
    assert show_episode(cfg, model, 3, tmp_path).read_bytes() == content
    env.close()
    if name.endswith("txt"):
        lines = content.decode().splitlines()
        assert lines[0].startswith("Goal ") and lines[-1].startswith("End ") and len(content) < 20_000
    else:
        from PIL import Image

        with Image.open(path) as image:
            assert image.n_frames > 5 and max(image.size) <= 256  # type: ignore[attr-defined]
