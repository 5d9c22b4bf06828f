"""Frames kept once come back as they went in, and memory stays what it should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rlexp.buffers.frame_store import FrameStore
from rlexp.buffers.prioritized import PrioritizedReplayBuffer
from rlexp.buffers.replay import NStepReplay
from rlexp.runs import checkpoint

_SHAPE = (4, 3, 5)
_SPACE = spaces.Box(0, 255, _SHAPE, np.uint8)


class Film:
    """Frame stacks of some environments that move by one each step; episodes begin with zeros, copies or cuts."""

    def __init__(self, n_envs: int, seed: int = 0, done: float = 0.15) -> None:
        self.rng, self.n_envs, self.done = np.random.default_rng(seed), n_envs, done
        self.stacks = np.stack([self._begin() for _ in range(n_envs)])

    def _frame(self) -> Any:
        return self.rng.integers(1, 255, _SHAPE[1:], dtype=np.uint8)

    def _begin(self) -> Any:
        frame, way = self._frame(), self.rng.integers(3)
        old = {0: np.zeros_like(frame), 1: frame}.get(int(way))
        return np.stack([*([old] * 3 if old is not None else [self._frame() for _ in range(3)]), frame])

    def step(self) -> tuple[Any, Any, Any]:
        before = self.stacks.copy()
        after = np.stack([np.concatenate([stack[1:], self._frame()[None]]) for stack in before])
        done = self.rng.random(self.n_envs) < self.done
        self.stacks = np.stack(
            [self._begin() if end else stack for end, stack in zip(done, after, strict=True)]
        )
        return before, after, done


@pytest.mark.parametrize("kind", [NStepReplay, PrioritizedReplayBuffer])
@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_samples_are_those_of_a_plain_buffer(kind: type[NStepReplay], n_envs: int, rows: int) -> None:
    arguments: dict[str, Any] = {"n_steps": min(rows, 2), "gamma": 0.9}
    plain = kind(rows * n_envs, _SPACE, spaces.Discrete(2), "cpu", n_envs, **arguments)
    shared = kind(rows * n_envs, _SPACE, spaces.Discrete(2), "cpu", n_envs, share_frames=True, **arguments)
    film = Film(n_envs)
    for _ in range(5 * rows + 3):
        before, after, done = film.step()
        for buffer in (plain, shared):
            buffer.add(before, after, np.zeros(n_envs, int), np.zeros(n_envs), done, [{}] * n_envs)
        np.random.seed(0)
        one = plain.sample(40)
        np.random.seed(0)
        other = shared.sample(40)
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_every_frame_is_kept_once() -> None:
    store, film = FrameStore(1000, 1, _SHAPE, np.uint8), Film(1, done=0.0)
    for row in range(1000):
        store.put(row, *film.step()[:2])
    assert store.n_frames <= 1000 + 4
    for row in range(1000):
        store.put(row, *film.step()[:2])
    assert store.n_frames <= 1000 + 4 and store._touched <= 1000 + 5, "slots are used again"
    assert store.frames.nbytes < 1.04 * 1000 * 15


def test_uses_are_counted_right() -> None:
    store, film = FrameStore(9, 2, _SHAPE, np.uint8), Film(2, done=0.4)
    for step in range(60):
        store.put(step % 9, *film.step()[:2])
        used = np.bincount(store.slots[store.slots >= 0], minlength=len(store.frames))
        assert np.array_equal(used, store._uses)
        assert sorted(store._free) == np.flatnonzero(used[: store._touched] == 0).tolist()


def test_short_episodes_make_it_grow() -> None:
    store, film = FrameStore(40, 1, _SHAPE, np.uint8), Film(1, done=1.0)
    seen = []
    for row in range(40):
        before, after, _ = film.step()
        seen.append((before[0], after[0]))
        store.put(row, before, after)
    assert len(store.frames) > 60
    items = np.arange(40)
    assert np.array_equal(store.stacks(items, after=False), np.stack([one for one, _ in seen]))
    assert np.array_equal(store.stacks(items, after=True), np.stack([two for _, two in seen]))


@pytest.mark.parametrize("steps", [6, 33])
def test_it_comes_back_bit_by_bit(tmp_path: Any, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlexp.buffers.chunked_io.CHUNK_BYTES", 40)

    def build() -> PrioritizedReplayBuffer:
        return PrioritizedReplayBuffer(20, _SPACE, spaces.Discrete(2), "cpu", 2, share_frames=True)

    buffer, film = build(), Film(2)

    def go_on(one: PrioritizedReplayBuffer, film: Film, steps: int) -> None:
        for _ in range(steps):
            before, after, done = film.step()
            one.add(before, after, np.zeros(2, int), np.zeros(2), done, [{}] * 2)

    go_on(buffer, film, steps)
    state = buffer.checkpoint_state()
    assert all(np.shares_memory(piece, buffer.frames.frames) for piece in state["frames"]["frames"])  # type: ignore[union-attr]
    state = checkpoint.load(checkpoint.save(tmp_path, state, 1, keep_last=1))
    other = build()
    other.load_checkpoint_state(state)
    assert not state["frames"]["frames"], "pieces are let go of"
    for one in (buffer, other):
        go_on(one, Film(2, seed=9), 15)
    np.random.seed(0)
    mine = buffer.sample(50)
    np.random.seed(0)
    assert all(np.array_equal(a, b) for a, b in zip(mine, other.sample(50), strict=True))


def test_only_stacks_can_share_frames() -> None:
    with pytest.raises(ValueError, match="share_frames"):
        NStepReplay(10, spaces.Box(-1, 1, (3,)), spaces.Discrete(2), "cpu", share_frames=True)
