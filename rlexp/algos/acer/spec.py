"""Actor-critic with experience replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlexp.algos.common.config import ActorCriticConfig
from rlexp.config.fields import choice, number, required
from rlexp.errors import UsageError
from rlexp.registry import AlgoSpec


@dataclass
class ACERConfig(ActorCriticConfig):
    """Settings of :class:`~rlexp.algos.acer.acer.ACER`."""

    policy: str = choice("auto", "MlpPolicy", "CnnPolicy", "MlpLstmPolicy", "CnnLstmPolicy")
    lstm_hidden_size: int = number(at_least=1, policy=True)
    replay_ratio: float = number(at_least=0)
    buffer_size: int = number(at_least=1)
    batch_size: int = number(at_least=1)
    learning_starts: int = number(at_least=0)
    reward_scale: float = number(above=0)
    importance_weight_clip: float = number(above=0, formerly="weight_cap")
    trust_region: bool = required()
    trust_region_delta: float = number(above=0)
    trust_region_statistics: str = choice("probabilities", "logits")
    average_policy_decay: float = number(at_least=0, at_most=1, formerly="average_decay")
    bias_correction: bool = required()
    retrace: bool = required()
    dueling: bool = required()
    dueling_samples: int = number(at_least=1)
    log_std_init: float = required(policy=True)
    learn_std: bool = required(policy=True)
    use_rms_prop: bool = required()
    rms_prop_eps: float = number(above=0)

    @staticmethod
    def check_together(settings: Mapping[str, Any], n_envs: int) -> None:
        """Check that the replay buffer holds what is sampled from it.

        :raises UsageError: naming the setting
        """
        if settings["replay_ratio"] == 0:
            return
        rollout, starts = settings["n_steps"] * n_envs, settings["learning_starts"]
        for name, least in {"n_steps x n_envs": rollout, "learning_starts": starts}.items():
            if settings["buffer_size"] < least:
                raise UsageError(
                    f"buffer_size: {settings['buffer_size']} given, must be at least {name} = {least}"
                )


SPECS = (
    AlgoSpec(
        "acer",
        "rlexp.algos.acer.acer:ACER",
        "Actor-critic with experience replay (Wang et al. 2017)",
        actions=("discrete", "continuous"),
        observations=("vector", "image"),
        masked_target="rlexp.algos.acer.acer:MaskableACER",
        config=ACERConfig,
    ),
)
