"""Learning from demonstrations: read them, check their spaces, transpose images, pre-train."""

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
from rlexp.demonstrations.dataset import Demonstrations, Episode
from rlexp.demonstrations.storage import read
from rlexp.errors import UsageError

DemonstrationSource = str | PathLike[str] | Demonstrations


def episodes_for(
    source: DemonstrationSource | None, first: int | None, env: VecEnv, algorithm: str
) -> tuple[Episode, ...]:
    """Return the episodes of demonstrations, with observations in the layout that the algorithm reads.

    :param source: a file, a Minari dataset, or what was read from one
    :param first: use only the first so many episodes; None: all
    :param env: the algorithm's, whose wrapper may have transposed images
    :param algorithm: its name, for messages
    :raises UsageError: when there are none, the file is unusable, or they are of an environment with other spaces
    """
    if source is None:
        raise UsageError(
            f"demonstrations: none given, {algorithm} learns from them; rlexp demos collects some. Pass them to a "
            f"loaded model as {algorithm}.load(path, env=env, demonstrations=...)"
        )
    found = source if isinstance(source, Demonstrations) else read(source)
    name = "demonstrations" if isinstance(source, Demonstrations) else f"demonstrations: {source}"
    transposed = is_vecenv_wrapped(env, VecTransposeImage)
    space = env.observation_space
    if transposed:
        space = _inner(env).observation_space
    found.require(space, env.action_space, name)
    episodes = found.episodes if first is None else found.episodes[:first]
    if first is not None and first > len(found.episodes):
        raise UsageError(f"demonstration_episodes: {first} given, {name} holds {len(found.episodes)}")
    return tuple(_transposed(episode, env) for episode in episodes) if transposed else episodes


def unsaved_demonstrations(source: DemonstrationSource | None) -> tuple[str, ...]:
    """Return the attributes to leave out of ``model.zip``: a path is saved, the demonstrations themselves are not.

    :param source: a file, a Minari dataset, or what was read from one
    """
    return () if isinstance(source, str) else ("demonstrations",)


class DemonstrationLearner(OffPolicyAlgorithm):
    """Mixin of off-policy algorithms that learn from demonstrations before and during training."""

    demonstrations: DemonstrationSource | None
    demonstration_episodes: int | None
    pretrain_updates: int

    def _episodes(self) -> tuple[Episode, ...]:
        assert self.env is not None
        return episodes_for(self.demonstrations, self.demonstration_episodes, self.env, type(self).__name__)

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, *args: Any, **kwargs: Any
    ) -> RolloutReturn:
        """Collect a rollout; before the first one, pre-train."""
        self.pretrain(callback)
        return super().collect_rollouts(env, callback, *args, **kwargs)

    def pretrain(self, callback: BaseCallback) -> None:
        """Learn from demonstrations alone, as far as a resumed run has not done so already.

        :param callback: called at the rollout boundaries
        """
        pretrain(self.pretrain_updates, lambda: self._n_updates, self._pretrain, callback)

    def _pretrain(self, updates: int) -> None:
        """Do some updates on demonstrations alone."""
        raise NotImplementedError

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), *unsaved_demonstrations(self.demonstrations)]


def _inner(env: VecEnv) -> VecEnv:
    """Return the environment inside ``VecTransposeImage``."""
    while not isinstance(env, VecTransposeImage):
        env = env.venv  # type: ignore[attr-defined]
    return env.venv


def _transposed(episode: Episode, env: VecEnv) -> Episode:
    space = env.observation_space

    def transpose(array: Any, wanted: spaces.Space[Any]) -> Any:
        return array if array.shape[1:] == wanted.shape else np.moveaxis(array, -1, 1)

    observations: Any = episode.observations
    if isinstance(space, spaces.Dict):
        observations = {key: transpose(part, space[key]) for key, part in observations.items()}
    else:
        observations = transpose(observations, space)
    return Episode(observations, episode.actions, episode.rewards, episode.terminated, episode.truncated)
