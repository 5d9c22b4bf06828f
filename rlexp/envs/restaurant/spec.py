"""What the runner knows of ``env=restaurant`` before it is imported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from rlexp.config.fields import choice, number, required
from rlexp.registry import EnvSpec

# OmegaConf reads these annotations at run time and supports Optional[...] only, not the bar notation.
# ruff: noqa: UP045


@dataclass
class RestaurantConfig:
    """Settings of :class:`rlexp.envs.restaurant.env.RestaurantEnv`."""

    name: str = required()
    error_rate: float = number(at_least=0, at_most=1)
    error_model: str = choice("set1", "set3", "random")
    n_best: int = number(at_least=1, at_most=5)
    user: str = choice("sampled", "unfriendly", "default")
    patience: list[int] = field(default_factory=list)
    max_turns: int = number(at_least=1)
    masks: bool = required()
    disabled_actions: list[str] = field(default_factory=list)
    end_on_user_bye: bool = required()
    max_turns_is_truncation: bool = required()
    success_reward: float = number(at_least=0)
    database: Optional[str] = required()
    ontology: Optional[str] = required()
    confusion_seed: Optional[int] = number(at_least=0)


SPECS = (
    EnvSpec(
        "restaurant",
        "rlexp.envs.restaurant.factory:make",
        "Cambridge-restaurants dialogue task (268 state inputs, 16 summary actions)",
        actions="discrete",
        observations="vector",
        controllers=("handcrafted",),
        metrics=("turns", "system_turns", "loops"),
        figures=(("success_rate", "success rate {:.1%}"), ("system_turns_mean", "{:.1f} turns")),
        episode="dialogue",
        gymnasium_id="rlexp/Restaurant-v0",
        config=RestaurantConfig,
    ),
)
