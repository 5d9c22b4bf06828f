"""What ACER can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from omegaconf import MISSING

from rlexp.config.fields import choice, given, number

# OmegaConf reads these annotations at run time and knows Optional[...], not the bar notation.
# ruff: noqa: UP045


@dataclass
class ACERConfig:
    """Actor-critic with experience replay; see :class:`rlexp.algos.acer.ACER`."""

    name: str = given()
    policy: str = choice("auto", "MlpPolicy", "CnnPolicy", "MlpLstmPolicy", "CnnLstmPolicy")
    net_arch: Any = MISSING
    lstm_hidden_size: int = number(at_least=1)
    activation_fn: str = choice("ReLU", "Tanh", "ELU", "LeakyReLU", "GELU", "SiLU")
    ortho_init: bool = given()
    learning_rate: float = number(above=0)
    n_steps: int = number(at_least=1)
    gamma: float = number(above=0, at_most=1)
    replay_ratio: float = number(at_least=0)
    buffer_size: int = number(at_least=1)
    batch_size: int = number(at_least=1)
    learning_starts: int = number(at_least=0)
    reward_scale: float = number(above=0)
    ent_coef: float = number(at_least=0)
    vf_coef: float = number(at_least=0)
    max_grad_norm: Optional[float] = number(above=0)
    weight_cap: float = number(above=0)
    trust_region: bool = given()
    trust_region_delta: float = number(above=0)
    trust_region_statistics: str = choice("probabilities", "logits")
    average_decay: float = number(at_least=0, at_most=1)
    bias_correction: bool = given()
    retrace: bool = given()
    dueling: bool = given()
    dueling_samples: int = number(at_least=1)
    log_std_init: float = given()
    learn_std: bool = given()
    use_rms_prop: bool = given()
    rms_prop_eps: float = number(above=0)
