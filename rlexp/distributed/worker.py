"""The actors' side: a process with tasks, a copy of the policy, and sequences in the making."""

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
from rlexp.buffers.sequence_builder import Sequences, Window, join
from rlexp.distributed.shard import Complete

Weights = dict[str, npt.NDArray[Any]]


class Event(NamedTuple):
    """Something that the learner's callbacks want to hear of: an episode's end, or a part of a long one."""

    env: int
    """In which of the actor's tasks."""
    done: bool
    info: dict[str, Any]
    """Numbers and words only, and what Stable-Baselines3's Monitor says of an episode."""


class Report(NamedTuple):
    """What an actor says of some steps; the sequences themselves go to the replay."""

    steps: int
    """Of all its tasks together."""
    events: list[list[Event]]
    """Those of one moment together, in the order of time."""
    sequences: int
    """How many became complete."""


class EnvWorker:
    """Acts when it is asked to.

    :param make_envs: builds the tasks
    :param policy_class: of the policy
    :param policy_words: its arguments; the weights come later
    :param settings: of the learner, for the priorities of new sequences
    :param window: how episodes are cut
    :param computed: initial priorities are those that the learner would report; False: the largest so far
    :param seed: of the tasks and of exploration
    """

    def __init__(
        self,
        make_envs: Callable[[], VecEnv],
        policy_class: type[RecurrentPolicy],
        policy_words: dict[str, Any],
        settings: Settings,
        window: Window,
        computed: bool,
        seed: int,
    ) -> None:
        th.set_num_threads(1)
        random.seed(seed)
        np.random.seed(seed)
        th.manual_seed(seed)
        self._envs = BaseAlgorithm._wrap_env(make_envs(), verbose=0)
        self._envs.seed(seed)
        self._policy = policy_class(**policy_words)
        self._learner = Learner(self._policy, settings)
        self._actor = Actor(self._policy, self._envs.num_envs, window)
        self._computed = computed
        self._length = window.length
        first: Any = self._envs.reset()
        self._observations = first
        self._actor.begin(first)

    def take_weights(self, weights: Weights) -> None:
        """Act with other weights from now on."""
        self._policy.load_state_dict({name: th.from_numpy(array) for name, array in weights.items()})

    def collect(self, epsilons: npt.NDArray[Any] | float, least: int) -> tuple[Report, Complete | None]:
        """Act until something can be sent.

        :param epsilons: exploration rate of each task, or of all
        :param least: sequences that must be complete; fewer do after as many steps as those take in one episode
        :return: a report, and the sequences with their priorities
        """
        found: list[Sequences] = []
        events: list[list[Event]] = []
        complete = moments = 0
        enough = self._length * (1 + least // self._envs.num_envs)
        while complete < least and moments < enough:
            actions = self._actor.act(self._observations, epsilons)
            self._envs.step_async(actions)
            self._observations, rewards, dones, infos = self._envs.step_wait()
            sequences = self._actor.observe(rewards, dones, infos, self._observations)
            moments += 1
            if sequences is not None:
                found.append(sequences)
                complete += len(sequences)
            heard = [
                Event(env, bool(done), _plain(info))
                for env, (done, info) in enumerate(zip(dones, infos, strict=True))
                if done or "period" in info
            ]
            if heard:
                events.append(heard)
        report = Report(moments * self._envs.num_envs, events, complete)
        return report, self._with_priorities(join(found)) if found else None

    def _with_priorities(self, sequences: Sequences) -> Complete:
        return sequences, self._learner.initial_priorities(sequences) if self._computed else None


def _plain(info: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in info.items()
        if key in ("episode", "period") or isinstance(value, (bool, int, float, str, np.number, np.bool_))
    }
