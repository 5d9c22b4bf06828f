"""Learning from demonstrations: a file or the object is taken, checked, brought into shape and pre-trained on."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import RolloutReturn
from stable_baselines3.common.vec_env import VecEnv, VecTransposeImage, is_vecenv_wrapped

from rlexp.algos.common.pretraining import pretrain
from rlexp.demonstrations.dataset import Demonstrations, Episode, read
from rlexp.errors import UsageError

Given = str | PathLike[str] | Demonstrations


def episodes_for(given: Given | None, first: int | None, env: VecEnv, algorithm: str) -> tuple[Episode, ...]:
    """Return demonstrated episodes with observations as the algorithm sees them.

    :param given: a file, or what was read from one
    :param first: only so many; None: all
    :param env: the algorithm's, whose wrapper may have turned pictures round
    :param algorithm: its name, for messages
    :raises UsageError: when there are none, the file is unusable, or they are of a task with other spaces
    """
    if given is None:
        raise UsageError(
            f"demonstrations: none given, {algorithm} learns from them; rlexp demos records some. A loaded model takes "
            f"them as {algorithm}.load(path, env=env, demonstrations=...)"
        )
    found = given if isinstance(given, Demonstrations) else read(given)
    source = "demonstrations" if isinstance(given, Demonstrations) else f"demonstrations: {given}"
    turned = is_vecenv_wrapped(env, VecTransposeImage)
    space = env.observation_space
    if turned:
        space = _inner(env).observation_space
    found.require(space, env.action_space, source)
    episodes = found.episodes if first is None else found.episodes[:first]
    if first is not None and first > len(found.episodes):
        raise UsageError(f"demonstration_episodes: {first} given, {source} holds {len(found.episodes)}")
    return tuple(_turned(episode, env) for episode in episodes) if turned else episodes


def unsaved(given: Given | None) -> tuple[str, ...]:
    """Return the names of attributes to leave out of ``model.zip``: a path is saved, what was read from one is not."""
    return () if isinstance(given, str) else ("demonstrations",)


class DemonstrationLearner(OffPolicyAlgorithm):
    """Mixin of off-policy algorithms that learn from demonstrations before they take a step, and beside their own."""

    demonstrations: Given | None
    demonstration_episodes: int | None
    pretrain_updates: int

    def _episodes(self) -> tuple[Episode, ...]:
        assert self.env is not None
        return episodes_for(self.demonstrations, self.demonstration_episodes, self.env, type(self).__name__)

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, *args: Any, **kwargs: Any
    ) -> RolloutReturn:
        """Before the first step of all, learn from demonstrations alone."""
        self.pretrain(callback)
        return super().collect_rollouts(env, callback, *args, **kwargs)

    def pretrain(self, callback: BaseCallback) -> None:
        """Learn from demonstrations alone, until that has been done."""
        pretrain(self.pretrain_updates, lambda: self._n_updates, self._pretrain, callback)

    def _pretrain(self, updates: int) -> None:
        """Do some updates on demonstrations alone."""
        raise NotImplementedError

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), *unsaved(self.demonstrations)]


def _inner(env: VecEnv) -> VecEnv:
    """Return what the wrapper that turns pictures round is wrapped around."""
    while not isinstance(env, VecTransposeImage):
        env = env.venv  # type: ignore[attr-defined]
    return env.venv


def _turned(episode: Episode, env: VecEnv) -> Episode:
    space = env.observation_space

    def turn(array: Any, wanted: spaces.Space[Any]) -> Any:
        return array if array.shape[1:] == wanted.shape else np.moveaxis(array, -1, 1)

    observations: Any = episode.observations
    if isinstance(space, spaces.Dict):
        observations = {key: turn(part, space[key]) for key, part in observations.items()}
    else:
        observations = turn(observations, space)
    return Episode(observations, episode.actions, episode.rewards, episode.terminated, episode.truncated)
