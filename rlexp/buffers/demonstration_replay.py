"""One prioritized replay for the agent's transitions and for demonstrations that are never overwritten (DQfD)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecNormalize

from rlexp.buffers.priorities import Proportional
from rlexp.buffers.prioritized import PrioritizedReplayBuffer
from rlexp.buffers.replay import Array, Indices, NStepReplay, NStepSamples, Tensors
from rlexp.demonstrations.dataset import Episode


class OneStep(NamedTuple):
    """What one-step targets need; ``n`` is the batch size."""

    rewards: th.Tensor  # (n, 1)
    dones: th.Tensor  # (n, 1): 1 at true terminals, 0 at time limits
    next_observations: Tensors  # (n, ...)


class DemonstrationSamples(NamedTuple):
    """A batch with n-step and one-step targets, and which of it are demonstrations."""

    many: NStepSamples
    one: OneStep
    is_demonstration: th.Tensor  # (n, 1): 1 for demonstrations


class DemonstrationReplay(PrioritizedReplayBuffer):
    """A ring of the agent's transitions, followed by demonstrations that are never overwritten.

    Both are sampled from one distribution. Every priority gets a bonus, a larger one for demonstrations, which decides
    the ratio of demonstrations in a batch (Hester et al. 2018).

    :param buffer_size: the agent's transitions, of all environments together
    :param observation_space: Box, Discrete, MultiDiscrete, MultiBinary, or a Dict of them
    :param action_space: as in Stable-Baselines3
    :param device: where samples go
    :param n_envs: environments stepped together
    :param agent_bonus: ε_a, added to the agent's priorities
    :param demonstration_bonus: ε_d, added to the priorities of demonstrations
    :param kwargs: of :class:`~rlexp.buffers.prioritized.PrioritizedReplayBuffer`, with ``scheme="proportional"``
    :raises ValueError: when a value is not allowed
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        device: th.device | str = "auto",
        n_envs: int = 1,
        *,
        agent_bonus: float = 0.001,
        demonstration_bonus: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(buffer_size, observation_space, action_space, device, n_envs, **kwargs)
        if self.scheme != "proportional":
            raise ValueError(f"scheme: '{self.scheme}' given, demonstrations need proportional")
        self.agent_bonus, self.demonstration_bonus = agent_bonus, demonstration_bonus
        self.episodes: Callable[[], tuple[Episode, ...]] | None = None
        """Reads the demonstrations when they are first needed."""
        self.demonstration_buffer: NStepReplay | None = None
        self.demonstration_draws = 0
        self.agent_draws = 0

    def load_demonstrations(self) -> NStepReplay:
        """Return the demonstrations; the first call reads them.

        :raises ValueError: when none were given, or transitions were stored before
        """
        if self.demonstration_buffer is not None:
            return self.demonstration_buffer
        if self.episodes is None:
            raise ValueError("demonstrations: none given")
        if len(self):
            raise ValueError("demonstrations: must be loaded before the first transition is stored")
        episodes = self.episodes()
        total = sum(len(episode) for episode in episodes)
        self.demonstration_buffer = NStepReplay(
            total,
            self.observation_space,
            self.action_space,
            self.device,
            n_steps=min(self.n_steps, total),
            gamma=self.gamma,
            reward_clip=self.reward_clip,
            share_frames=self.frames is not None,
        )
        for episode in episodes:
            n = len(episode)
            ends = np.arange(n) == n - 1
            self.demonstration_buffer.extend(
                _time_steps(episode.observations, slice(0, n)),
                _time_steps(episode.observations, slice(1, n + 1)),
                episode.actions.reshape(n, 1, -1),
                episode.rewards.reshape(n, 1),
                ends.reshape(n, 1),
                timeouts=(ends & (not episode.terminated)).reshape(n, 1),
            )
        self.priorities = Proportional(self.capacity + total, self.alpha)
        self.priorities.fill(
            self.capacity, self.capacity + total, self.max_priority + self.demonstration_bonus
        )
        return self.demonstration_buffer

    def sample_mixed(self, batch_size: int, env: VecNormalize | None = None) -> DemonstrationSamples:
        """Sample transitions of both kinds, with replacement; the agent's come first.

        :param batch_size: how many
        :param env: normalises observations and rewards
        """
        demonstrations = self.load_demonstrations()
        indices, weights = self._draw(batch_size)
        is_demonstration = indices >= self.capacity
        parts: list[DemonstrationSamples] = []
        self.agent_draws += int((~is_demonstration).sum())
        self.demonstration_draws += int(is_demonstration.sum())
        for store, chosen, first in (
            (self, ~is_demonstration, 0),
            (demonstrations, is_demonstration, self.capacity),
        ):
            if not chosen.any():
                continue
            local = indices[chosen] - first
            many = NStepReplay._gather(store, local, weights[chosen], env)
            marks = self._tensor(np.full((len(local), 1), first > 0, np.float32))
            one = _one_step(store, local, env)
            parts.append(DemonstrationSamples(many._replace(indices=indices[chosen]), one, marks))
        return parts[0] if len(parts) == 1 else _joined(parts)

    def update_priorities(self, indices: Indices, td_errors: Array | th.Tensor) -> None:
        """Set priorities to ``|δ| + ε_a`` for the agent's transitions and ``|δ| + ε_d`` for demonstrations.

        :param indices: of a sample, ``(n,)``
        :param td_errors: ``(n,)`` or ``(n, 1)``, signed or absolute
        """
        errors = (
            td_errors.detach().cpu().numpy() if isinstance(td_errors, th.Tensor) else np.asarray(td_errors)
        )
        sizes = np.abs(errors.reshape(-1), dtype=np.float64) + self.priority_epsilon
        bonus = np.where(indices >= self.capacity, self.demonstration_bonus, self.agent_bonus)
        self.priorities.put(indices, sizes + bonus)
        # New transitions are the agent's: their initial priority contains no bonus of demonstrations.
        self.max_priority = max(self.max_priority, float(sizes.max(initial=0.0)))

    def digest(self) -> str:
        """Return a checksum of the demonstrations."""
        found = hashlib.sha256()
        for name, array in self.load_demonstrations()._arrays():
            found.update(f"{name} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def checkpoint_state(self) -> dict[str, Any]:
        """Return the state without the demonstrations, which are read from their file again."""
        draws = (self.agent_draws, self.demonstration_draws)
        return {**super().checkpoint_state(), "demonstrations": self.digest(), "draws": draws}

    def load_checkpoint_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`checkpoint_state` returned.

        :raises ValueError: when the demonstrations have changed
        """
        if state["demonstrations"] != self.digest():
            raise ValueError("demonstrations: not those with which this run began")
        super().load_checkpoint_state(state)
        self.agent_draws, self.demonstration_draws = state["draws"]


def _time_steps(observations: Any, steps: slice) -> Any:
    if isinstance(observations, dict):
        return {key: part[steps][:, None] for key, part in observations.items()}
    return observations[steps][:, None]


def _one_step(store: NStepReplay, indices: npt.NDArray[np.int64], env: VecNormalize | None) -> OneStep:
    rewards = store.rewards.reshape(-1)[indices]
    if env is not None:
        rewards = env.normalize_reward(rewards).astype(np.float32)
    dones = (store.dones * (1 - store.timeouts)).reshape(-1)[indices]
    return OneStep(
        store._tensor(rewards.reshape(-1, 1)),
        store._tensor(dones.reshape(-1, 1)),
        store._observations_of("next_observations", indices, env),
    )


def _joined(parts: list[DemonstrationSamples]) -> DemonstrationSamples:
    def join(values: list[Any]) -> Any:
        first = values[0]
        if first is None:
            return None
        if isinstance(first, dict):
            return {key: join([value[key] for value in values]) for key in first}
        return np.concatenate(values) if isinstance(first, np.ndarray) else th.cat(values)

    return DemonstrationSamples(
        NStepSamples(*(join(list(values)) for values in zip(*(part.many for part in parts), strict=True))),
        OneStep(*(join(list(values)) for values in zip(*(part.one for part in parts), strict=True))),
        join([part.is_demonstration for part in parts]),
    )
