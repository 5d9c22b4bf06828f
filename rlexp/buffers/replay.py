"""Uniform replay with n-step returns; the base of the other buffers of transitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import BaseBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from rlexp.buffers.chunked_io import chunks, restore_chunks
from rlexp.buffers.frame_store import FrameStore
from rlexp.buffers.jit import compiled

Array = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]
Tensors = th.Tensor | dict[str, th.Tensor]


class NStepSamples(NamedTuple):
    """Stable-Baselines3's samples with importance weights; ``n`` is the batch size.

    ``dones`` is 1 only at true terminals, not at time limits; ``rewards`` are n-step returns; ``discounts`` is the
    factor of the value of ``next_observations``, None where the buffer has no discount factor.
    """

    observations: Tensors  # (n, ...)
    actions: th.Tensor  # (n, action_dim)
    next_observations: Tensors  # (n, ...)
    dones: th.Tensor  # (n, 1)
    rewards: th.Tensor  # (n, 1)
    discounts: th.Tensor | None  # (n, 1)
    weights: th.Tensor  # (n, 1)
    indices: Indices  # (n,), for ``update_priorities``


class NStepReplay(ReplayBuffer):
    """Uniform replay; every transition of every environment is sampled with the same probability.

    The index of a transition is ``row * n_envs + env``.

    :param buffer_size: transitions of all environments together
    :param observation_space: Box, Discrete, MultiDiscrete, MultiBinary, or a Dict of them
    :param action_space: as in Stable-Baselines3
    :param device: where samples go
    :param n_envs: environments stepped together
    :param optimize_memory_usage: not supported, since it loses the observation before a time limit
    :param handle_timeout_termination: bootstrap from the last observation at a time limit
    :param n_steps: rewards summed before bootstrapping; fewer at the end of an episode and near the newest transition
    :param gamma: discount factor; needed when n_steps is more than 1
    :param reward_clip: rewards are clipped to ±reward_clip when they are stored; None: not clipped
    :param share_frames: observations are stacks ``(frames, height, width)``, of which each frame is stored once
    :raises ValueError: when the parameters contradict one another
    """

    observations: Any  # array, or one per key
    next_observations: Any

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: th.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        n_steps: int = 1,
        gamma: float | None = None,
        reward_clip: float | None = None,
        share_frames: bool = False,
    ) -> None:
        if optimize_memory_usage:
            raise ValueError(
                "optimize_memory_usage: not supported, since it loses the observation before a time limit"
            )
        if n_steps < 1:
            raise ValueError(f"n_steps: {n_steps} given, must be at least 1")
        if n_steps > 1 and gamma is None:
            raise ValueError("gamma: none given, n-step returns need it")
        # ReplayBuffer's own constructor knows no Dict spaces.
        BaseBuffer.__init__(self, buffer_size, observation_space, action_space, device, n_envs=n_envs)
        self.buffer_size = max(buffer_size // n_envs, 1)  # time steps
        if n_steps > self.buffer_size:
            raise ValueError(
                f"n_steps: {n_steps} given, the buffer holds {self.buffer_size} steps of each environment"
            )
        self._on_cpu = self.device.type == "cpu"
        self.optimize_memory_usage = False
        self.handle_timeout_termination = handle_timeout_termination
        self.n_steps = n_steps
        self.gamma = gamma
        self.reward_clip = reward_clip
        shape = (self.buffer_size, n_envs)
        self.frames: FrameStore | None = None
        if share_frames:
            if isinstance(observation_space, spaces.Dict) or len(self.obs_shape) != 3:
                raise ValueError(
                    "share_frames: observations must be stacks of frames, (frames, height, width)"
                )
            self.frames = FrameStore(self.buffer_size, n_envs, self.obs_shape, observation_space.dtype)
            self.observations = self.next_observations = None
        else:
            self._allocate_observations(shape)
        dtype = self._maybe_cast_dtype(action_space.dtype)
        self.actions = np.zeros((*shape, self.action_dim), dtype=dtype)
        self.rewards = np.zeros(shape, dtype=np.float32)
        self.dones = np.zeros(shape, dtype=np.float32)
        self.timeouts = np.zeros(shape, dtype=np.float32)
        # Where the next time step is not a continuation although no episode ended.
        self.breaks = np.zeros(shape, dtype=np.bool_)

    def _allocate_observations(self, shape: tuple[int, int]) -> None:
        space = self.observation_space
        if isinstance(space, spaces.Dict):
            shapes: Any = self.obs_shape
            self.observations = {
                key: np.zeros((*shape, *shapes[key]), dtype=space[key].dtype) for key in shapes
            }
        else:
            self.observations = np.zeros((*shape, *self.obs_shape), dtype=space.dtype)
        self.next_observations = (
            {key: np.zeros_like(array) for key, array in self.observations.items()}
            if isinstance(self.observations, dict)
            else np.zeros_like(self.observations)
        )

    @property
    def capacity(self) -> int:
        """Number of transitions that fit."""
        return self.buffer_size * self.n_envs

    def __len__(self) -> int:
        return (self.buffer_size if self.full else self.pos) * self.n_envs

    # --------------------------------------------------------------------------------------------- writing

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: Array,
        reward: Array,
        done: Array,
        infos: list[dict[str, Any]],
    ) -> None:
        """Store one time step of every environment.

        :param obs: ``(n_envs, ...)``, or one such array per key
        :param next_obs: of the same shape; where an episode ended, its last observation
        :param action: ``(n_envs, action_dim)`` or ``(n_envs,)``
        :param reward: ``(n_envs,)``
        :param done: ``(n_envs,)``, whether the episode ended, by a terminal or a time limit
        :param infos: one per environment, read for ``TimeLimit.truncated``
        """
        row = self.pos
        self._store_observations(slice(row, row + 1), obs, next_obs)
        self.actions[row] = action.reshape(self.n_envs, self.action_dim)
        self.rewards[row] = reward if self.reward_clip is None else self._clipped(reward)
        self.dones[row] = done
        if self.handle_timeout_termination:
            self.timeouts[row] = [info.get("TimeLimit.truncated", False) for info in infos]
        self.breaks[row] = False
        self._advance(1)

    def extend(
        self,
        obs: Any,
        next_obs: Any,
        actions: Any,
        rewards: Any,
        dones: Any,
        infos: Sequence[list[dict[str, Any]]] | None = None,
        *,
        timeouts: Array | None = None,
    ) -> None:
        """Store many time steps at once, as Stable-Baselines3's buffers do; the oldest ones are overwritten.

        :param obs: ``(n_rows, n_envs, ...)``, or one such array per key, or one dictionary per time step
        :param next_obs: of the same form
        :param actions: ``(n_rows, n_envs, action_dim)`` or ``(n_rows, n_envs)``
        :param rewards: ``(n_rows, n_envs)``
        :param dones: ``(n_rows, n_envs)``
        :param infos: per time step, as for :meth:`add`
        :param timeouts: instead of ``infos``, ``(n_rows, n_envs)``: whether the end was a time limit; neither: never
        :raises ValueError: when the arguments differ in their number of time steps
        """
        if infos is not None:
            timeouts = np.array(
                [[info.get("TimeLimit.truncated", False) for info in row] for row in infos], dtype=np.float32
            )
        obs, next_obs = _by_key(obs), _by_key(next_obs)
        actions, rewards, dones = np.asarray(actions), np.asarray(rewards), np.asarray(dones)
        n_rows = len(rewards)
        given = [*_leaves(obs), *_leaves(next_obs), actions, dones, *([] if timeouts is None else [timeouts])]
        if any(len(part) != n_rows for part in given):
            raise ValueError(f"rewards: {n_rows} time steps given, the other arguments have another number")
        begin = 0
        while begin < n_rows:
            end = min(n_rows, begin + self.buffer_size - self.pos)
            here, there = slice(begin, end), slice(self.pos, self.pos + end - begin)
            shape = (end - begin, self.n_envs)
            self._store_observations(there, _part(obs, here), _part(next_obs, here))
            self.actions[there] = actions[here].reshape(*shape, self.action_dim)
            reward = np.reshape(rewards[here], shape)
            self.rewards[there] = reward if self.reward_clip is None else self._clipped(reward)
            self.dones[there] = np.reshape(dones[here], shape)
            if self.handle_timeout_termination:
                self.timeouts[there] = 0 if timeouts is None else np.reshape(timeouts[here], shape)
            self.breaks[there] = False
            self._advance(end - begin)
            begin = end

    def _store_observations(self, rows: slice, obs: Any, next_obs: Any) -> None:
        if self.frames is not None:
            shape = (rows.stop - rows.start, self.n_envs, *self.obs_shape)
            for k, (before, after) in enumerate(
                zip(np.reshape(obs, shape), np.reshape(next_obs, shape), strict=True)
            ):
                self.frames.put(rows.start + k, before, after)
            return
        if isinstance(self.observations, dict):
            for key, array in self.observations.items():
                target = array[rows]
                target[...] = np.reshape(obs[key], target.shape)
                self.next_observations[key][rows] = np.reshape(next_obs[key], target.shape)
            return
        target = self.observations[rows]
        target[...] = np.reshape(obs, target.shape)
        self.next_observations[rows] = np.reshape(next_obs, target.shape)

    def _clipped(self, rewards: Array) -> Array:
        assert self.reward_clip is not None
        return np.asarray(np.clip(rewards, -self.reward_clip, self.reward_clip))

    def _advance(self, rows: int) -> None:
        self.pos += rows
        if self.pos == self.buffer_size:
            self.full = True
            self.pos = 0

    def break_trajectories(self) -> None:
        """Mark that the next transition does not continue the newest one, although no episode ended."""
        if self.full or self.pos:
            self.breaks[self.pos - 1] = True

    # --------------------------------------------------------------------------------------------- reading

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> NStepSamples:  # type: ignore[override]
        """Sample transitions, with replacement.

        :param batch_size: how many; may exceed the number stored
        :param env: normalises observations and rewards
        :raises ValueError: when the buffer is empty
        """
        indices, weights = self._draw(batch_size)
        return self._gather(indices, weights, env)

    def _draw(self, batch_size: int) -> tuple[Indices, Weights]:
        """Sample indices and their importance weights, ``(n,)`` each."""
        if not len(self):
            raise ValueError("cannot sample: the buffer is empty")
        return np.random.randint(0, len(self), size=batch_size), np.ones(batch_size)

    def _gather(self, indices: Indices, weights: Weights, env: VecNormalize | None = None) -> NStepSamples:
        gamma = 1.0 if self.gamma is None else self.gamma
        newest = (self.pos - 1) % self.buffer_size
        scalars, lasts, lengths = _returns(
            self.rewards,
            self.dones,
            self.timeouts,
            self.breaks,
            indices,
            weights,
            newest,
            self.n_steps,
            gamma,
        )
        if env is not None:
            scalars[0] = self._normalized_returns(indices, lengths, gamma, env)
        # One transfer to the device for all scalars.
        rewards, dones, discounts, weight_tensor = self._tensor(scalars).unbind()
        return NStepSamples(
            observations=self._observations_of("observations", indices, env),
            actions=self._tensor(_flat(self.actions).take(indices, axis=0)),
            next_observations=self._observations_of("next_observations", lasts, env),
            dones=dones,
            rewards=rewards,
            discounts=None if self.gamma is None else discounts,
            weights=weight_tensor,
            indices=indices,
        )

    def _observations_of(self, which: str, indices: Indices, env: VecNormalize | None) -> Tensors:
        stored = getattr(self, which)
        if isinstance(stored, dict):
            found: Any = {key: _flat(array).take(indices, axis=0) for key, array in stored.items()}
            return {key: self._tensor(array) for key, array in self._normalize_obs(found, env).items()}  # type: ignore[union-attr]
        if self.frames is not None:
            found = self.frames.stacks(indices, after=which == "next_observations")
        else:
            found = _flat(stored).take(indices, axis=0)
        return self._tensor(found if env is None else self._normalize_obs(found, env))  # type: ignore[arg-type]

    def _normalized_returns(
        self, indices: Indices, lengths: Indices, gamma: float, env: VecNormalize
    ) -> Array:
        """Normalisation clips, so that it must precede the sum."""
        steps = np.arange(self.n_steps)
        window = (indices[:, None] + steps * self.n_envs) % self.capacity
        rewards = env.normalize_reward(self.rewards.reshape(-1)[window]) * gamma**steps
        return np.asarray(
            np.sum(rewards * (steps < lengths[:, None]), axis=1, keepdims=True, dtype=np.float32)
        )

    def _tensor(self, array: Array) -> th.Tensor:
        """Every array passed here is a new one, so that the tensor may share its memory."""
        tensor = th.from_numpy(array)
        return tensor if self._on_cpu else tensor.to(self.device, non_blocking=True)

    # --------------------------------------------------------------------------------- the learner's side

    def anneal(self, progress_remaining: float) -> None:
        """Follow the progress of training; nothing to do here.

        :param progress_remaining: from 1 to 0
        """

    def update_priorities(self, indices: Indices, td_errors: Array | th.Tensor) -> None:
        """Use the TD errors of a sample; nothing to do here.

        :param indices: of the sample, ``(n,)``
        :param td_errors: ``(n,)`` or ``(n, 1)``
        """

    # -------------------------------------------------------------------------------------------- exact state

    def checkpoint_state(self) -> dict[str, Any]:
        """Return the complete state as views and JSON values; nothing large is copied."""
        rows = self.buffer_size if self.full else self.pos
        return {
            "pos": self.pos,
            "full": self.full,
            "arrays": {name: list(chunks(array[:rows])) for name, array in self._arrays()},
            "frames": None if self.frames is None else self.frames.state(rows),
        }

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`checkpoint_state` returned; its chunks are released one by one."""
        self.pos, self.full = state["pos"], state["full"]
        for name, array in self._arrays():
            restore_chunks(array, state["arrays"][name])
        if self.frames is not None:
            self.frames.load_state(state["frames"])

    def _arrays(self) -> Iterator[tuple[str, Array]]:
        for name in ("observations", "next_observations"):
            stored = getattr(self, name)
            if stored is None:  # in the frame store
                continue
            if isinstance(stored, dict):
                yield from ((f"{name}.{key}", array) for key, array in stored.items())
            else:
                yield name, stored
        for name in ("actions", "rewards", "dones", "timeouts", "breaks"):
            yield name, getattr(self, name)


def _by_key(observations: Any) -> Any:
    """Return one array per key where there is one dictionary per time step."""
    if isinstance(observations, dict) or len(observations) == 0 or not isinstance(observations[0], dict):
        return observations
    return {key: np.stack([row[key] for row in observations]) for key in observations[0]}


def _leaves(observations: Any) -> list[Any]:
    return list(observations.values()) if isinstance(observations, dict) else [observations]


def _part(array: Any, rows: slice) -> Any:
    return {key: part[rows] for key, part in array.items()} if isinstance(array, dict) else array[rows]


def _flat(array: Array) -> Array:
    """View ``(buffer_size, n_envs, ...)`` as ``(buffer_size * n_envs, ...)``."""
    return array.reshape(-1, *array.shape[2:])


@compiled
def _returns(
    rewards: Any,
    dones: Any,
    timeouts: Any,
    breaks: Any,
    indices: Any,
    weights: Any,
    newest: int,
    n_steps: int,
    gamma: float,
) -> Any:
    """Sum rewards from some transitions on, to the end of the episode, the newest time step or ``n_steps``.

    :param rewards: ``(buffer_size, n_envs)``, as ``dones``, ``timeouts`` and ``breaks``
    :param indices: indices of the transitions, ``(n,)``
    :param weights: their importance weights, ``(n,)``
    :param newest: row written last
    :return: ``(4, n, 1)``: returns, whether the last step was terminal, the discount of the next value, the weights;
        the index of the last step and the number of steps, ``(n,)`` each
    """
    rows, n_envs = rewards.shape
    n = indices.size
    scalars = np.empty((4, n, 1), dtype=np.float32)
    lasts = np.empty(n, dtype=np.int64)
    lengths = np.empty(n, dtype=np.int64)
    for k in range(n):
        row = indices[k] // n_envs
        env = indices[k] - row * n_envs
        discount = gamma
        total = np.float64(rewards[row, env])
        length = 1
        while length < n_steps and row != newest and dones[row, env] == 0.0 and not breaks[row, env]:
            row = row + 1 if row + 1 < rows else 0
            total += discount * rewards[row, env]
            discount *= gamma
            length += 1
        scalars[0, k, 0] = total
        # Most steps end no episode; not reading the time limit saves a cache miss.
        scalars[1, k, 0] = dones[row, env] * (1.0 - timeouts[row, env]) if dones[row, env] != 0.0 else 0.0
        scalars[2, k, 0] = discount
        scalars[3, k, 0] = weights[k]
        lasts[k] = row * n_envs + env
        lengths[k] = length
    return scalars, lasts, lengths
