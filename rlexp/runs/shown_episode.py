"""One evaluation episode for people: the transcript that an environment writes, or the frames that it draws."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from omegaconf import DictConfig

from rlexp.demonstrations.lockstep import by_model, isolated_random_state, play
from rlexp.errors import UsageError, first_line
from rlexp.runs.factories import is_masked, make_env
from rlexp.runs.folder import write_atomically
from rlexp.system import stopping
from rlexp.system.files import open_file

TRANSCRIPT, FRAMES = "episode.txt", "episode.gif"
_MODES = ("rgb_array", "ansi")
_MOST_FRAMES = 300
_WIDEST = 256  # pixels


def check_shown(env: gymnasium.Env[Any, Any], label: str) -> None:
    """Try whether an environment can show an episode, without a display.

    :param env: newly built
    :param label: names it in the message
    :raises UsageError: when it cannot
    """
    try:
        _set_mode(env)
        env.reset(seed=0)
        shown = env.render()
    except Exception as error:  # a missing package, no graphics driver, or an environment of any origin
        raise UsageError(
            f"logger.show_episode: env={label} cannot be shown here: {first_line(error)}"
        ) from error
    if shown is None:
        raise UsageError(f"logger.show_episode: env={label} shows nothing; leave it out")


def show_episode(cfg: DictConfig, model: Any, seed: int, folder: Path) -> Path:
    """Play one evaluation episode and write what the environment shows of it; no generator of training is disturbed.

    :param cfg: config of the run
    :param model: trained
    :param seed: of the episode and of sampled actions
    :param folder: run folder
    :return: ``episode.txt``, a transcript, or ``episode.gif``: the first 300 frames, at most 256 pixels wide
    :raises UsageError: when the environment shows nothing
    """
    env = make_env(cfg, evaluation=True)
    try:
        _set_mode(env)
        shown: list[Any] = []
        choose = by_model(model, cfg.evaluation.deterministic, is_masked(cfg))
        with isolated_random_state(seed, model), stopping.doing("the episode that is shown"):
            for _ in play([env], choose, [seed], lambda *_: shown.append(env.render())):
                stopping.raise_if_requested()
                shown.append(env.render())
                if len(shown) >= _MOST_FRAMES and not isinstance(shown[-1], str):
                    break
        if isinstance(shown[-1], str):
            write_atomically(folder / TRANSCRIPT, _text(shown))
            return folder / TRANSCRIPT
        _write_frames(folder / FRAMES, shown, env.metadata.get("render_fps", 10))
        return folder / FRAMES
    finally:
        env.close()


def _set_mode(env: gymnasium.Env[Any, Any]) -> None:
    """Let an environment show itself; it reads the mode when it is reset or rendered, or it draws in no mode at all."""
    modes = env.unwrapped.metadata.get("render_modes", ())
    mode = next((mode for mode in _MODES if mode in modes), None)
    if mode is None:
        raise UsageError("it has neither frames nor a transcript")
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame would look for a display
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    env.unwrapped.render_mode = mode


def _text(shown: list[str]) -> str:
    grows = shown[-1].startswith(shown[0])  # a transcript of everything so far; else one text per step
    return (shown[-1] if grows else "\n\n".join(shown)) + "\n"


def _write_frames(path: Path, frames: list[Any], per_second: float) -> None:
    from PIL import Image

    images = [Image.fromarray(np.asarray(frame, np.uint8)) for frame in frames]
    scale = min(1.0, _WIDEST / images[0].width)
    size = (round(images[0].width * scale), round(images[0].height * scale))
    first, *others = [image.resize(size).quantize(64) for image in images]
    with open_file(path, "wb") as file:
        milliseconds = max(20, round(1000 / per_second))
        first.save(file, "GIF", save_all=True, append_images=others, duration=milliseconds, loop=0)
