"""What ACER cannot learn with, said in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium import spaces

from rlexp.errors import UsageError, did_you_mean

STATISTICS = ("probabilities", "logits")
_POSITIVE = ("n_steps", "batch_size", "dueling_samples", "weight_cap", "reward_scale", "trust_region_delta")


def refuse_spaces(
    observation_space: spaces.Space[Any], action_space: spaces.Space[Any], masked: bool = False
) -> None:
    """Refuse spaces that it cannot act in or read.

    :raises UsageError: naming the space
    """
    if isinstance(action_space, spaces.Discrete):
        if action_space.start != 0:
            raise UsageError(f"ACER needs actions that are numbered from 0, the task has {action_space}")
    elif masked:
        raise UsageError(f"ACER with action masks needs Discrete actions, the task has {action_space}")
    elif not isinstance(action_space, spaces.Box) or len(action_space.shape) != 1:
        raise UsageError(
            f"ACER needs Discrete actions or a Box of one dimension, the task has {action_space}"
        )
    if isinstance(observation_space, (spaces.Dict, spaces.Tuple)):
        kind = type(observation_space).__name__
        raise UsageError(f"ACER needs vector or image observations, the task has {kind}")


def refuse_words(words: Mapping[str, Any], n_envs: int) -> None:
    """Refuse settings that cannot work.

    :param words: of the constructor
    :raises UsageError: naming the word
    """
    given = words["trust_region_statistics"]
    if given not in STATISTICS:
        allowed = ", ".join(STATISTICS)
        raise UsageError(
            f"trust_region_statistics: '{given}' given, allowed are {allowed}{did_you_mean(given, STATISTICS)}"
        )
    for name in _POSITIVE:
        if not words[name] > 0:
            raise UsageError(f"{name}: {words[name]} given, must be greater than 0")
    if words["replay_ratio"] < 0:
        raise UsageError(f"replay_ratio: {words['replay_ratio']} given, must be at least 0")
    if not 0 <= words["average_decay"] <= 1:
        raise UsageError(f"average_decay: {words['average_decay']} given, must be from 0 to 1")
    if words["replay_ratio"] > 0:
        fresh = words["n_steps"] * n_envs
        for name, least in {"n_steps x n_envs": fresh, "learning_starts": words["learning_starts"]}.items():
            if words["buffer_size"] < least:
                raise UsageError(
                    f"buffer_size: {words['buffer_size']} given, must be at least {name} = {least}"
                )
