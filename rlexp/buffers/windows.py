"""Windows of consecutive steps out of a flat replay buffer, for learners with a memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecNormalize

from rlexp.buffers.jit import compiled
from rlexp.buffers.replay import NStepReplay

Array = npt.NDArray[Any]


class Windows(NamedTuple):
    """Windows of one episode each, time first; ``T = burn_in + length``, ``n`` windows.

    Step ``p`` is ``o_p, a_p -> r_p, o_{p+1}``. A window begins at ``p = 0`` whatever its length; its first
    ``before[k]`` steps only warm a memory up, the ``mask`` marks those to learn from. What lies behind the end is zero.
    """

    observations: th.Tensor  # (T + 1, n, obs_dim): o_p
    previous_actions: th.Tensor  # (T + 1, n, action_dim): a_{p-1}; 0 at the beginning of an episode
    rewards: th.Tensor  # (T, n): r_p
    terminals: th.Tensor  # (T, n): 1 where o_{p+1} ended the episode by itself, not by a time limit
    mask: th.Tensor  # (T, n): 1 at the steps to learn from
    before: th.Tensor  # (n,), int64: index of the first of them
    lengths: th.Tensor  # (n,), int64: how many there are

    @property
    def actions(self) -> th.Tensor:
        """``a_p``, ``(T, n, action_dim)``."""
        return self.previous_actions[1:]


class SequenceReplay(NStepReplay):
    """Replay of windows; no window reaches over the end of an episode, a reset, or the newest step.

    A window is drawn by drawing one of its steps, uniformly over all that are stored. With ``anchor="last"`` that is
    its last step. With ``anchor="any"`` its place in the window is drawn, too: every step is learned from as often,
    but for those within a window's length of an end of the episode, down to half as often.

    :param buffer_size: steps in all environments together; likewise the other words of
        :class:`~rlexp.buffers.replay.NStepReplay`
    :param length: steps of a window to learn from
    :param burn_in: steps before them, as far as the episode has some
    :param anchor: ``"any"`` or ``"last"``
    :raises ValueError: when a word is not allowed
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: th.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        length: int = 20,
        burn_in: int = 0,
        anchor: str = "any",
    ) -> None:
        if not isinstance(observation_space, spaces.Box) or len(observation_space.shape) != 1:
            raise ValueError(f"windows are of vector observations, the task has {observation_space}")
        super().__init__(
            buffer_size,
            observation_space,
            action_space,
            device,
            n_envs,
            optimize_memory_usage,
            handle_timeout_termination,
        )
        if anchor not in ("any", "last"):
            raise ValueError(f"anchor: '{anchor}' given, allowed are any, last")
        if length < 1 or burn_in < 0:
            raise ValueError(f"length, burn_in: {length}, {burn_in} given, must be at least 1, 0")
        self.length = length
        self.burn_in = burn_in
        self.anchor = anchor

    def windows(self, batch_size: int, env: VecNormalize | None = None) -> Windows:
        """Draw windows, with replacement.

        :param batch_size: how many, however few steps there are
        :param env: normalises observations and rewards
        :raises ValueError: when the buffer is empty
        """
        items, _ = self._draw(batch_size)
        if self.anchor == "any":
            places = np.random.randint(0, self.length, size=batch_size)
        else:
            places = np.full(batch_size, self.length - 1)
        return self.windows_at(items, places, env)

    def windows_at(
        self, items: npt.NDArray[np.int64], places: npt.NDArray[np.int64], env: VecNormalize | None = None
    ) -> Windows:
        """Return the windows in which some steps have some places.

        :param items: ``row * n_envs + env`` of each step, ``(n,)``
        :param places: its place among the steps to learn from, 0 to ``length - 1``, ``(n,)``; where the episode begins
            later or ends earlier than the window would, the window is the shorter for it
        :param env: normalises observations and rewards
        """
        newest = (self.pos - 1) % self.buffer_size
        oldest = self.pos if self.full else 0
        first, before, lengths, led = _extents(
            self.dones, self.breaks, items, places, oldest, newest, self.length, self.burn_in
        )
        steps = np.arange(self.burn_in + self.length + 1)[:, None]
        total = before + lengths
        within = steps[:-1] < total  # (T, n)
        rows = (first + steps) % self.buffer_size  # (T + 1, n)
        envs = items % self.n_envs
        last = (first + total - 1) % self.buffer_size
        observations = np.where((steps < total)[..., None], self.observations[rows, envs], 0)
        columns = np.arange(len(items))
        observations[total, columns] = self.next_observations[last, envs]
        if env is not None:
            normalized = np.asarray(self._normalize_obs(observations, env))
            observations = np.where((steps <= total)[..., None], normalized, 0)
        previous = np.zeros((*rows.shape, self.action_dim), np.float32)
        previous[1:] = np.where(within[..., None], self.actions[rows[:-1], envs], 0)
        previous[0] = np.where(led[:, None], self.actions[(first - 1) % self.buffer_size, envs], 0)
        rewards = self.rewards[rows[:-1], envs]
        if env is not None:
            rewards = env.normalize_reward(rewards).astype(np.float32)
        terminals = self.dones[rows[:-1], envs] * (1 - self.timeouts[rows[:-1], envs])
        mask = within & (steps[:-1] >= before)
        return Windows(
            observations=self._tensor(observations.astype(np.float32, copy=False)),
            previous_actions=self._tensor(previous),
            rewards=self._tensor(np.where(within, rewards, np.float32(0))),
            terminals=self._tensor(np.where(within, terminals, np.float32(0))),
            mask=self._tensor(mask.astype(np.float32)),
            before=self._tensor(before),
            lengths=self._tensor(lengths),
        )


@compiled
def _extents(
    dones: Any,
    breaks: Any,
    items: Any,
    places: Any,
    oldest: int,
    newest: int,
    length: int,
    burn_in: int,
) -> Any:
    """Find where windows begin and end.

    :param dones: ``(rows, n_envs)``, likewise ``breaks``
    :param items: ``(n,)``, likewise ``places``
    :param oldest: row written first, ``newest``: row written last
    :return: first row, number of steps of burn-in, number of steps to learn from, whether the step before the first row
        belongs to the episode; ``(n,)`` each
    """
    rows, n_envs = dones.shape
    n = items.size
    first = np.empty(n, dtype=np.int64)
    before = np.empty(n, dtype=np.int64)
    lengths = np.empty(n, dtype=np.int64)
    led = np.empty(n, dtype=np.bool_)
    for k in range(n):
        here = items[k] // n_envs
        env = items[k] - here * n_envs
        row = here
        back = 0  # steps of the window before the drawn one, then of its burn-in
        while True:
            earlier = row - 1 if row > 0 else rows - 1
            connected = row != oldest and dones[earlier, env] == 0.0 and not breaks[earlier, env]
            if not connected or back == places[k] + burn_in:
                break
            row = earlier
            back += 1
        first[k] = row
        led[k] = connected
        learned_before = min(back, places[k])
        before[k] = back - learned_before
        row = here
        ahead = 0
        while (
            ahead < length - 1 - places[k]
            and row != newest
            and dones[row, env] == 0.0
            and not breaks[row, env]
        ):
            row = row + 1 if row + 1 < rows else 0
            ahead += 1
        lengths[k] = learned_before + 1 + ahead
    return first, before, lengths, led
