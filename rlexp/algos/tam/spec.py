"""Trainable action mask."""

from __future__ import annotations

from dataclasses import dataclass

from rlexp.algos.common.config import ClippedPolicyConfig
from rlexp.config.fields import choice, number, required
from rlexp.registry import AlgoSpec


@dataclass
class TAMConfig(ClippedPolicyConfig):
    """Settings of :class:`~rlexp.algos.tam.tam.TAM`."""

    policy: str = choice("auto", "MlpPolicy")
    normalize_advantage: bool = required()
    termination_threshold: float = number(above=0, at_most=1)
    similarity_threshold: float = number(above=0, at_most=1)
    loop_similarity: float = number(above=0, at_most=1)
    mask_after: int = number(at_least=0)
    user_model_hidden: int = number(at_least=1)
    user_model_learning_rate: float = number(above=0)
    user_model_updates: int = number(at_least=1)
    user_model_batch_size: int = number(at_least=1)
    buffer_size: int = number(at_least=1, formerly="replay_size")


SPECS = (
    AlgoSpec(
        "tam",
        "rlexp.algos.tam.tam:TAM",
        "PPO with a trainable action mask (Wu, Tseng & Rasmussen 2020)",
        actions=("discrete",),
        observations=("vector",),
        config=TAMConfig,
    ),
)
