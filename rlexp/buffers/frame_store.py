"""Stacked frames of which every frame is stored once.

Of the ``2 k`` frames of a transition all but one are usually stored already: a step moves the stack by one, and the
next transition begins where this one ended. Frames are compared by content, so that whatever an environment does at the
beginning or the end of an episode is returned exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlexp.buffers.chunked_io import chunks, restore_chunks

Array = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]

_SLACK = 1.02  # an episode has a few frames more than steps; untouched memory costs nothing


class FrameStore:
    """Observations and next observations of ``n_rows × n_envs`` transitions.

    :param n_rows: time steps per environment
    :param n_envs: environments
    :param shape: ``(k, height, width)`` of one observation
    :param dtype: of the frames
    """

    def __init__(self, n_rows: int, n_envs: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        slots = int(n_rows * n_envs * _SLACK) + 4 * shape[0] * n_envs
        self.frames = np.zeros((slots, *shape[1:]), dtype=dtype)
        # (n_rows, n_envs, 2, k): the slots of the observation and of the next one; -1 where nothing is stored
        self.slots = np.full((n_rows, n_envs, 2, shape[0]), -1, dtype=np.int32)
        self._uses = np.zeros(slots, dtype=np.int32)
        self._free: list[
            int
        ] = []  # released slots; they are used first, so that memory grows only when needed
        self._touched = 0
        # Slots of the last next observation of each environment.
        self._latest = np.full((n_envs, shape[0]), -1, dtype=np.int32)

    def put(self, row: int, obs: Array, next_obs: Array) -> None:
        """Store one time step.

        :param row: index of the time step; its old content is released
        :param obs: ``(n_envs, k, height, width)``
        :param next_obs: ``(n_envs, k, height, width)``
        """
        for env in range(len(obs)):
            before = self._slots_of(obs[env], self._latest[env])
            moved = np.append(before[1:], np.int32(-1))
            after = self._slots_of(next_obs[env], moved)
            old = self.slots[row, env].copy()
            self.slots[row, env, 0] = before
            self.slots[row, env, 1] = after
            self._latest[env] = after
            # Only now, since the new observation may share frames with the old content.
            self._release(old[old >= 0])

    def _slots_of(self, stack: Array, expected: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return the slots of a stack's frames, with their reference counts increased.

        :param stack: ``(k, height, width)``
        :param expected: ``(k,)``: where each frame probably is; -1: nowhere
        """
        found = expected.copy()
        known = found >= 0
        # A released slot may still hold this very frame, but must not be used while it is on the free list.
        known &= self._uses[found] > 0
        known[known] = (self.frames[found[known]] == stack[known]).all(axis=(1, 2))
        for k in range(len(stack)):
            if not known[k]:
                twin = k > 0 and np.array_equal(
                    stack[k], stack[k - 1]
                )  # episodes often begin with repeated frames
                found[k] = found[k - 1] if twin else self._new(stack[k])
            self._uses[found[k]] += 1
        return found

    def _new(self, frame: Array) -> int:
        if self._free:
            slot = self._free.pop()
        else:
            slot = self._touched
            if slot == len(self.frames):
                self._grow()
            self._touched += 1
        self.frames[slot] = frame
        return slot

    def _grow(self) -> None:
        """Enlarge the store, with a copy: only when episodes are so short that most frames begin or end one."""
        slots = len(self.frames) * 3 // 2 + 1
        for name in ("frames", "_uses"):
            old = getattr(self, name)
            new = np.zeros((slots, *old.shape[1:]), dtype=old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def _release(self, slots: npt.NDArray[np.int32]) -> None:
        for slot in slots.tolist():
            self._uses[slot] -= 1
            if self._uses[slot] == 0:
                self._free.append(slot)

    def stacks(self, indices: Indices, after: bool) -> Array:
        """Return observations, or the next ones, as a copy ``(n, k, height, width)``.

        :param indices: ``(n,)``, ``row * n_envs + env``
        :param after: the next observations
        """
        slots = self.slots.reshape(-1, 2, self.shape[0])[indices, int(after)]
        return np.asarray(self.frames.take(slots, axis=0))

    @property
    def n_frames(self) -> int:
        """Number of different frames stored."""
        return self._touched - len(self._free)

    def state(self, n_rows: int) -> dict[str, Any]:
        """Return what :meth:`load_state` needs, as views and JSON values.

        :param n_rows: number of time steps stored
        """
        return {
            "frames": list(chunks(self.frames[: self._touched])),
            "slots": list(chunks(self.slots[:n_rows])),
            "uses": self._uses[: self._touched],
            "free": np.array(self._free, dtype=np.int32),
            "latest": self._latest,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned; its chunks are released one by one."""
        self._touched = len(state["uses"])
        while len(self.frames) < self._touched:
            self._grow()
        restore_chunks(self.frames, state["frames"])
        restore_chunks(self.slots, state["slots"])
        self._uses[: self._touched] = state["uses"]
        self._free = state["free"].tolist()
        self._latest[...] = state["latest"]
