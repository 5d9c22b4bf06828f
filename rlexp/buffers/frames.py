"""Stacks of frames in which every frame is kept once.

Of a transition's ``2 k`` frames all but one are usually known already: a step moves the stack by one, and the next
transition begins where this one ended. Frames are told by their content, so that whatever a task does at the beginning
or the end of an episode comes back exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlexp.buffers.pieces import chunks, take_over

Array = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]

_SLACK = 1.02  # a game has a few frames more than steps; memory that is never used costs nothing


class FrameStore:
    """Observations and next observations of ``rows × n_envs`` transitions.

    :param rows: steps of every environment
    :param n_envs: environments
    :param shape: ``(k, height, width)`` of one observation
    :param dtype: of its numbers
    """

    def __init__(self, rows: int, n_envs: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        slots = int(rows * n_envs * _SLACK) + 4 * shape[0] * n_envs
        self.frames = np.zeros((slots, *shape[1:]), dtype=dtype)
        # (rows, n_envs, 2, k): the slots of the observation and of the next one; -1 where nothing is stored
        self.slots = np.full((rows, n_envs, 2, shape[0]), -1, dtype=np.int32)
        self._uses = np.zeros(slots, dtype=np.int32)
        self._free: list[
            int
        ] = []  # slots used before; they are taken first, so that memory grows only when it must
        self._touched = 0
        self._latest = np.full(
            (n_envs, shape[0]), -1, dtype=np.int32
        )  # each environment's newest next observation

    def put(self, row: int, obs: Array, next_obs: Array) -> None:
        """Store one step.

        :param row: what was there is forgotten
        :param obs: ``(n_envs, k, height, width)``
        :param next_obs: likewise
        """
        for env in range(len(obs)):
            before = self._place(obs[env], self._latest[env])
            moved = np.append(before[1:], np.int32(-1))
            after = self._place(next_obs[env], moved)
            old = self.slots[row, env].copy()
            self.slots[row, env, 0] = before
            self.slots[row, env, 1] = after
            self._latest[env] = after
            # Only now, since the new observation may share frames with what is forgotten.
            self._release(old[old >= 0])

    def _place(self, stack: Array, expected: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return the slots of a stack's frames, each counted as used once more.

        :param expected: ``(k,)``: where each frame probably is; -1: nowhere
        """
        found = expected.copy()
        known = found >= 0
        # A slot that has been released may hold anything, but if it holds this frame, it cannot be told apart: still,
        # it must not be used while it is on the list of free ones.
        known &= self._uses[found] > 0
        known[known] = (self.frames[found[known]] == stack[known]).all(axis=(1, 2))
        for k in range(len(stack)):
            if not known[k]:
                twin = k > 0 and np.array_equal(stack[k], stack[k - 1])  # episodes often begin with copies
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
        """Make room, with a copy: only where episodes are so short that most frames begin or end one."""
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

    def stacks(self, items: Indices, after: bool) -> Array:
        """Return observations, or the next ones, as a copy ``(n, k, height, width)``.

        :param items: ``(n,)``, ``row * n_envs + env``
        """
        slots = self.slots.reshape(-1, 2, self.shape[0])[items, int(after)]
        return np.asarray(self.frames.take(slots, axis=0))

    @property
    def frames_kept(self) -> int:
        """How many different frames are stored."""
        return self._touched - len(self._free)

    def state(self, rows: int) -> dict[str, Any]:
        """Return what :meth:`load_state` needs, as views and JSON values.

        :param rows: how many are filled
        """
        return {
            "frames": list(chunks(self.frames[: self._touched])),
            "slots": list(chunks(self.slots[:rows])),
            "uses": self._uses[: self._touched],
            "free": np.array(self._free, dtype=np.int32),
            "latest": self._latest,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back a state; its large pieces are let go of one by one."""
        self._touched = len(state["uses"])
        while len(self.frames) < self._touched:
            self._grow()
        take_over(self.frames, state["frames"])
        take_over(self.slots, state["slots"])
        self._uses[: self._touched] = state["uses"]
        self._free = state["free"].tolist()
        self._latest[...] = state["latest"]
