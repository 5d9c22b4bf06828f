"""Sequences cut out of a flat replay buffer when they are sampled, for recurrent policies."""

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


class SequenceBatch(NamedTuple):
    """``n`` sequences of one episode each, time-major; ``T = burn_in + length``.

    Step ``p`` is ``o_p, a_p -> r_p, o_{p+1}``. Every sequence begins at ``p = 0``; its first ``burn_in[k]`` steps only
    refresh the recurrent state, ``mask`` marks those to learn from. The padding after the end is zero.
    """

    observations: th.Tensor  # (T + 1, n, obs_dim): o_p
    previous_actions: th.Tensor  # (T + 1, n, action_dim): a_{p-1}; 0 at the beginning of an episode
    rewards: th.Tensor  # (T, n): r_p
    terminals: th.Tensor  # (T, n): 1 where o_{p+1} is a true terminal, 0 at a time limit
    mask: th.Tensor  # (T, n): 1 at the steps to learn from
    burn_in: th.Tensor  # (n,), int64: number of steps before them
    lengths: th.Tensor  # (n,), int64: number of steps to learn from

    @property
    def actions(self) -> th.Tensor:
        """``a_p``, ``(T, n, action_dim)``."""
        return self.previous_actions[1:]


class SequenceReplay(NStepReplay):
    """Replay of sequences that never cross the end of an episode, a reset or the newest step.

    A sequence is sampled through one of its steps, uniformly over all that are stored. With ``anchor="last"`` that is
    its last step. With ``anchor="any"`` the position of the step within the sequence is sampled as well: all steps are
    learned from equally often, except for those within ``length`` of either end of an episode, down to half as often.

    :param buffer_size: transitions of all environments together
    :param observation_space: a Box of vectors
    :param action_space: as in Stable-Baselines3
    :param device: where samples go
    :param n_envs: environments stepped together
    :param optimize_memory_usage: not supported, since it loses the observation before a time limit
    :param handle_timeout_termination: bootstrap from the last observation at a time limit
    :param length: steps of a sequence to learn from
    :param burn_in: steps before them, as far as the episode has them
    :param anchor: ``"any"`` or ``"last"``
    :raises ValueError: when an argument is not allowed
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
            raise ValueError(f"sequences need vector observations, the environment has {observation_space}")
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

    def sample_sequences(self, batch_size: int, env: VecNormalize | None = None) -> SequenceBatch:
        """Sample sequences, with replacement.

        :param batch_size: how many; may exceed the number of steps stored
        :param env: normalises observations and rewards
        :raises ValueError: when the buffer is empty
        """
        indices, _ = self._draw(batch_size)
        if self.anchor == "any":
            positions = np.random.randint(0, self.length, size=batch_size)
        else:
            positions = np.full(batch_size, self.length - 1)
        return self.sequences_at(indices, positions, env)

    def sequences_at(
        self,
        indices: npt.NDArray[np.int64],
        positions: npt.NDArray[np.int64],
        env: VecNormalize | None = None,
    ) -> SequenceBatch:
        """Return the sequences in which some steps have some positions.

        :param indices: ``row * n_envs + env`` of each step, ``(n,)``
        :param positions: of the step among those to learn from, 0 to ``length - 1``, ``(n,)``; where the episode begins
            later or ends earlier, the sequence is shorter
        :param env: normalises observations and rewards
        """
        newest = (self.pos - 1) % self.buffer_size
        oldest = self.pos if self.full else 0
        first, before, lengths, has_previous = _extents(
            self.dones, self.breaks, indices, positions, oldest, newest, self.length, self.burn_in
        )
        steps = np.arange(self.burn_in + self.length + 1)[:, None]
        total = before + lengths
        within = steps[:-1] < total  # (T, n)
        rows = (first + steps) % self.buffer_size  # (T + 1, n)
        envs = indices % self.n_envs
        last = (first + total - 1) % self.buffer_size
        observations = np.where((steps < total)[..., None], self.observations[rows, envs], 0)
        columns = np.arange(len(indices))
        observations[total, columns] = self.next_observations[last, envs]
        if env is not None:
            normalized = np.asarray(self._normalize_obs(observations, env))
            observations = np.where((steps <= total)[..., None], normalized, 0)
        previous = np.zeros((*rows.shape, self.action_dim), np.float32)
        previous[1:] = np.where(within[..., None], self.actions[rows[:-1], envs], 0)
        previous[0] = np.where(has_previous[:, None], self.actions[(first - 1) % self.buffer_size, envs], 0)
        rewards = self.rewards[rows[:-1], envs]
        if env is not None:
            rewards = env.normalize_reward(rewards).astype(np.float32)
        terminals = self.dones[rows[:-1], envs] * (1 - self.timeouts[rows[:-1], envs])
        mask = within & (steps[:-1] >= before)
        return SequenceBatch(
            observations=self._tensor(observations.astype(np.float32, copy=False)),
            previous_actions=self._tensor(previous),
            rewards=self._tensor(np.where(within, rewards, np.float32(0))),
            terminals=self._tensor(np.where(within, terminals, np.float32(0))),
            mask=self._tensor(mask.astype(np.float32)),
            burn_in=self._tensor(before),
            lengths=self._tensor(lengths),
        )


@compiled
def _extents(
    dones: Any,
    breaks: Any,
    indices: Any,
    positions: Any,
    oldest: int,
    newest: int,
    length: int,
    burn_in: int,
) -> Any:
    """Find where sequences begin and end.

    :param dones: ``(buffer_size, n_envs)``, as ``breaks``
    :param indices: ``(n,)``, as ``positions``
    :param oldest: row written first
    :param newest: row written last
    :return: first row, steps of burn-in, steps to learn from, and whether the step before the first row belongs to the
        same episode; ``(n,)`` each
    """
    rows, n_envs = dones.shape
    n = indices.size
    first = np.empty(n, dtype=np.int64)
    before = np.empty(n, dtype=np.int64)
    lengths = np.empty(n, dtype=np.int64)
    has_previous = np.empty(n, dtype=np.bool_)
    for k in range(n):
        here = indices[k] // n_envs
        env = indices[k] - here * n_envs
        row = here
        back = 0  # steps before the sampled one: first those to learn from, then the burn-in
        while True:
            earlier = row - 1 if row > 0 else rows - 1
            connected = row != oldest and dones[earlier, env] == 0.0 and not breaks[earlier, env]
            if not connected or back == positions[k] + burn_in:
                break
            row = earlier
            back += 1
        first[k] = row
        has_previous[k] = connected
        learned_before = min(back, positions[k])
        before[k] = back - learned_before
        row = here
        ahead = 0
        while (
            ahead < length - 1 - positions[k]
            and row != newest
            and dones[row, env] == 0.0
            and not breaks[row, env]
        ):
            row = row + 1 if row + 1 < rows else 0
            ahead += 1
        lengths[k] = learned_before + 1 + ahead
    return first, before, lengths, has_previous
