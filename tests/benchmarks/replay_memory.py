"""Memory of a replay buffer of Atari screens at full size, and of its checkpoint.

``python tests/benchmarks/replay_memory.py [--transitions 1000000] [--folder DIR]``: fills a prioritized buffer with
episodes of random 84×84 screens, four to an observation, saves a checkpoint and restores it in a separate process.
Random screens are the worst case: no two are alike. Needs as much room on the disk as in memory.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import resource
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from gymnasium import spaces

from rlexp.buffers.prioritized import PrioritizedReplayBuffer
from rlexp.runs import checkpoint

SCREEN = (84, 84)
STACK = 4
EPISODE = 2000
GB = 1e9


def build(transitions: int) -> PrioritizedReplayBuffer:
    """Make the buffer of DQN's Atari settings."""
    space = spaces.Box(0, 255, (STACK, *SCREEN), np.uint8)
    return PrioritizedReplayBuffer(transitions, space, spaces.Discrete(6), "cpu", share_frames=True)


def fill(buffer: PrioritizedReplayBuffer, transitions: int) -> None:
    """Store episodes of random screens; each begins with one screen four times, as the emulator's do."""
    rng = np.random.default_rng(0)
    action, reward = np.zeros((1, 1)), np.zeros(1)
    stack = np.zeros((1, STACK, *SCREEN), np.uint8)
    for step in range(transitions):
        if step % EPISODE == 0:
            stack = np.repeat(_screen(rng)[None, None], STACK, axis=1)
        following = np.concatenate([stack[:, 1:], _screen(rng)[None, None]], axis=1)
        done = np.array([(step + 1) % EPISODE == 0], float)
        buffer.add(stack, following, action, reward, done, [{}])
        stack = following


def _screen(rng: np.random.Generator) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return np.frombuffer(rng.bytes(SCREEN[0] * SCREEN[1]), np.uint8).reshape(SCREEN)


def digest(buffer: PrioritizedReplayBuffer) -> str:
    """Return a fingerprint of what some draws bring."""
    np.random.seed(1)
    found = hashlib.sha256()
    for _ in range(200):
        batch = buffer.sample(32)
        found.update(batch.observations.numpy().tobytes())  # type: ignore[union-attr]
        found.update(batch.next_observations.numpy().tobytes())  # type: ignore[union-attr]
        found.update(batch.indices.tobytes())
    return found.hexdigest()


def peak() -> float:
    """Return the most memory that this process has held so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GB


def save(transitions: int, folder: Path, reply: multiprocessing.Queue[dict[str, float | str]]) -> None:
    """Fill a buffer and save it."""
    empty, begin = peak(), time.perf_counter()
    buffer = build(transitions)
    fill(buffer, transitions)
    buffer.update_priorities(np.arange(transitions), np.random.default_rng(2).random(transitions))
    filled, saving = peak(), time.perf_counter()
    checkpoint.save(folder, {"replay": buffer.checkpoint_state()}, transitions, keep_last=1)
    reply.put({"before": empty, "filled": filled, "saved": peak(), "fill_s": saving - begin,
               "s": time.perf_counter() - saving, "digest": digest(buffer)})  # fmt: skip


def restore(transitions: int, folder: Path, reply: multiprocessing.Queue[dict[str, float | str]]) -> None:
    """Restore it into a new buffer."""
    empty, begin = peak(), time.perf_counter()
    buffer = build(transitions)
    found = checkpoint.load(checkpoint.available(folder)[0])
    buffer.load_checkpoint_state(found["replay"])
    del found
    seconds = time.perf_counter() - begin
    reply.put({"before": empty, "restored": peak(), "s": seconds, "digest": digest(buffer)})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--transitions", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where the checkpoint goes for a while")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=arguments.folder))
    context = multiprocessing.get_context("spawn")
    try:
        results = []
        for action in (save, restore):
            reply = context.Queue()
            process = context.Process(target=action, args=(arguments.transitions, folder, reply))
            process.start()
            results.append(reply.get())
            process.join()
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / GB
    finally:
        shutil.rmtree(folder)
    one, other = results
    print(
        f"{arguments.transitions:,} transitions of {STACK}x{SCREEN[0]}x{SCREEN[1]}, prioritized; GB of 10^9 bytes"
    )
    print(f"  process before        {one['before']:6.2f} GB")
    print(f"  filled                {one['filled']:6.2f} GB   {one['fill_s']:6.1f} s")
    print(f"  peak while saving     {one['saved']:6.2f} GB   {one['s']:6.1f} s   {size:.2f} GB on disk")
    print(f"  peak while restoring  {other['restored']:6.2f} GB   {other['s']:6.1f} s")
    print(f"  the same draws after restoring: {one['digest'] == other['digest']}")


if __name__ == "__main__":
    main()
