"""Our view of MiniGrid beside MiniGrid's own, and the extractor's look-ups beside embeddings and a convolution."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch as th

from rlexp.envs.minigrid.env import make
from rlexp.networks.minigrid import MiniGridExtractor

TASKS = ("MiniGrid-UnlockPickup-v0", "MiniGrid-KeyCorridorS3R3-v0", "MiniGrid-MemoryS7-v0")
STEPS = 3000
OBSERVATIONS = 864  # 32 sequences of 27 steps
ROUNDS = 5


def steps_per_second(env: gymnasium.Env[Any, Any]) -> float:
    """Play at random."""
    actions = np.random.default_rng(0).integers(0, 7, STEPS)
    env.reset(seed=0)
    started = time.process_time()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return STEPS / (time.process_time() - started)


def milliseconds(work: Callable[[], Any]) -> float:
    """Return the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS + 1):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best * 1e3


def main() -> None:
    """Print ratios."""
    th.set_num_threads(1)
    for id in TASKS:
        ours = make(id)
        theirs = gymnasium.make(id, disable_env_checker=True).unwrapped
        pairs = [(steps_per_second(ours), steps_per_second(theirs)) for _ in range(3)]
        one, other = (max(column) for column in zip(*pairs, strict=True))
        print(
            f"{id:30} {one:8,.0f} steps/s, MiniGrid's own view {other:8,.0f}: {one / other:.1f} times as fast"
        )

    space = make(TASKS[0], mission_length=5).observation_space
    extractor = MiniGridExtractor(space)  # type: ignore[arg-type]
    rows = [space.sample() for _ in range(OBSERVATIONS)]
    batch = {key: th.as_tensor(np.stack([row[key] for row in rows])) for key in rows[0]}
    image = batch["image"].long()

    def plain() -> th.Tensor:
        cells = sum(embedding(image[..., k]) for k, embedding in enumerate(extractor.cells))
        return extractor.convolution(cells.permute(0, 3, 1, 2))  # type: ignore[union-attr,no-any-return]

    def ours_() -> th.Tensor:
        places = (image[..., 0] * 6 + image[..., 1]) * 4 + image[..., 2]
        return extractor._convolved(places)

    for name, look_up, convolve in (
        ("forward", lambda: (ours_(), None)[1], lambda: (plain(), None)[1]),
        ("forward and backward", lambda: ours_().sum().backward(), lambda: plain().sum().backward()),
    ):
        mine, other = milliseconds(look_up), milliseconds(convolve)
        both = f"{mine:.2f} ms, embeddings and convolution {other:.2f}"
        print(f"{OBSERVATIONS} images, {name}: {both}: {other / mine:.1f} times as fast")


if __name__ == "__main__":
    main()
