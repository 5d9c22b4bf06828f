"""An actor: environments, a copy of the policy and the sequences under construction, in a separate process."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from rlexp.algos.r2d2.actor import Actor
from rlexp.algos.r2d2.learner import Learner, Settings
from rlexp.algos.r2d2.policies import RecurrentPolicy
from rlexp.buffers.sequence_builder import SequenceLayout, Sequences, join
from rlexp.distributed.replay_shard import NewSequences

Weights = dict[str, npt.NDArray[Any]]


class Event(NamedTuple):
    """What the learner's callbacks need of a time step: the end of an episode, or of a part of a long one."""

    env: int
    """Index among the actor's environments."""
    done: bool
    info: dict[str, Any]
    """Numbers and strings only, and the episode statistics of Stable-Baselines3's Monitor."""


class Report(NamedTuple):
    """What an actor reports of some steps; the sequences themselves go to a replay shard."""

    steps: int
    """Of all its environments together."""
    events: list[list[Event]]
    """Grouped by time step, in order."""
    sequences: int
    """Number of sequences that became complete."""


class EnvWorker:
    """Steps its environments on request.

    :param make_envs: builds the environments
    :param policy_class: of the policy
    :param policy_kwargs: its constructor arguments; the weights arrive with :meth:`set_weights`
    :param settings: of the learner, for the priorities of new sequences
    :param layout: how episodes are cut into sequences
    :param compute_priorities: new sequences get the priorities the learner would compute; False: the largest so far
    :param seed: of the environments and of exploration
    """

    def __init__(
        self,
        make_envs: Callable[[], VecEnv],
        policy_class: type[RecurrentPolicy],
        policy_kwargs: dict[str, Any],
        settings: Settings,
        layout: SequenceLayout,
        compute_priorities: bool,
        seed: int,
    ) -> None:
        th.set_num_threads(1)
        random.seed(seed)
        np.random.seed(seed)
        th.manual_seed(seed)
        self._envs = BaseAlgorithm._wrap_env(make_envs(), verbose=0)
        self._envs.seed(seed)
        self._policy = policy_class(**policy_kwargs)
        self._learner = Learner(self._policy, settings)
        self._actor = Actor(self._policy, self._envs.num_envs, layout)
        self._compute_priorities = compute_priorities
        self._length = layout.length
        first: Any = self._envs.reset()
        self._observations = first
        self._actor.begin(first)

    def set_weights(self, weights: Weights) -> None:
        """Act with new weights from now on.

        :param weights: arrays by parameter name
        """
        self._policy.load_state_dict({name: th.from_numpy(array) for name, array in weights.items()})

    def collect(
        self, epsilons: npt.NDArray[Any] | float, min_sequences: int
    ) -> tuple[Report, NewSequences | None]:
        """Step the environments until max_time_steps sequences are complete.

        :param epsilons: exploration rates, ``(n_envs,)`` or one for all
        :param min_sequences: sequences that must be complete; fewer do after as many steps as they take in one episode
        :return: a report, and the sequences with their priorities; None: no sequence is complete
        """
        parts: list[Sequences] = []
        events: list[list[Event]] = []
        complete = time_steps = 0
        max_time_steps = self._length * (1 + min_sequences // self._envs.num_envs)
        while complete < min_sequences and time_steps < max_time_steps:
            actions = self._actor.act(self._observations, epsilons)
            self._envs.step_async(actions)
            self._observations, rewards, dones, infos = self._envs.step_wait()
            sequences = self._actor.observe(rewards, dones, infos, self._observations)
            time_steps += 1
            if sequences is not None:
                parts.append(sequences)
                complete += len(sequences)
            step_events = [
                Event(env, bool(done), _plain(info))
                for env, (done, info) in enumerate(zip(dones, infos, strict=True))
                if done
            ]
            if step_events:
                events.append(step_events)
        report = Report(time_steps * self._envs.num_envs, events, complete)
        return report, self._with_priorities(join(parts)) if parts else None

    def _with_priorities(self, sequences: Sequences) -> NewSequences:
        return sequences, self._learner.initial_priorities(sequences) if self._compute_priorities else None


def _plain(info: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in info.items()
        if key == "episode" or isinstance(value, (bool, int, float, str, np.number, np.bool_))
    }
