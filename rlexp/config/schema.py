"""Names, types and ranges of everything that a person can set. The values live in ``conf/*.yaml``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

from omegaconf import MISSING

from rlexp.config.acer import ACERConfig
from rlexp.config.datacenter import DataCenterConfig
from rlexp.config.dqn import AtariConfig, BlindCliffwalkConfig, DQNConfig, MinAtarConfig
from rlexp.config.fields import automatic, choice, given, number
from rlexp.config.games import (
    AutoencodeConfig,
    MiniGridConfig,
    PartialCartPoleConfig,
    PartialPendulumConfig,
    RepeatPreviousConfig,
)
from rlexp.config.memory import SACLSTMConfig, SLACConfig
from rlexp.config.r2d2 import BCConfig, DQfDConfig, R2D2Config, R2D3Config

# OmegaConf reads these annotations at run time and knows Optional[...], not the bar notation.
# ruff: noqa: UP045


@dataclass
class RayConfig:
    """Actors, replay and learner as processes of Ray's; see :mod:`rlexp.distributed`."""

    address: Optional[str] = given()
    actors: int = number(at_least=1, at_most=10_000)
    replay_shards: int = number(at_least=1, at_most=10_000)
    prefetch: int = number(at_least=1)
    weights_every: int = number(at_least=1)
    pace: str = choice("serial", "free")
    ladder: bool = given()
    send_every: int = number(at_least=1)
    object_store_mb: int = number(at_least=80)


@dataclass
class HardwareConfig:
    """Where a run computes."""

    device: str = choice("auto", "cpu", "cuda")
    torch_threads: Optional[int] = number(at_least=1, at_most=4096)
    n_envs: int = number(at_least=1, at_most=10_000)
    vec_env: str = choice("dummy", "subproc")
    ray: Optional[RayConfig] = None


@dataclass
class LoggerConfig:
    """Where metrics go beside the JSONL files, which are always written."""

    wandb: str = choice("offline", "online", "disabled")
    project: str = given()
    entity: Optional[str] = given()
    tensorboard: bool = given()
    metadata: bool = False  # not in the configs of older runs


@dataclass
class EvaluationConfig:
    """How a policy is measured during training and after it."""

    every_episodes: Optional[int] = number(at_least=1)
    every_timesteps: Optional[int] = number(at_least=1)
    episodes: int = number(at_least=0, at_most=1_000_000)
    n_envs: int = number(at_least=1, at_most=10_000)
    deterministic: bool = given()
    seed: Optional[int] = number(at_least=0)


@dataclass
class CheckpointConfig:
    """How often the exact state is kept."""

    every_timesteps: Optional[int] = number(at_least=1)
    every_minutes: Optional[float] = number(above=0)
    keep: int = number(at_least=1)


@dataclass
class Config:
    """One run."""

    seed: int = number(at_least=0, at_most=2**32 - 1)
    total_timesteps: Optional[int] = number(at_least=1)
    total_episodes: Optional[int] = number(at_least=1)
    output_dir: str = given()
    name: Optional[str] = given()
    tags: list[str] = field(default_factory=list)
    force: bool = given()
    algo: Any = MISSING
    env: Any = MISSING
    hardware: HardwareConfig = field(default_factory=HardwareConfig)
    logger: LoggerConfig = field(default_factory=LoggerConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)


@dataclass
class NetworkConfig:
    """Fields shared by the algorithms whose policy is an MLP or CNN of Stable-Baselines3."""

    name: str = given()
    policy: str = choice(
        "auto",
        "MlpPolicy",
        "CnnPolicy",
        "MultiInputPolicy",
        "MlpLstmPolicy",
        "CnnLstmPolicy",
        "MultiInputLstmPolicy",
    )
    net_arch: Any = MISSING
    activation_fn: str = choice("ReLU", "Tanh", "ELU", "LeakyReLU", "GELU", "SiLU")


@dataclass
class OnPolicyConfig(NetworkConfig):
    """Fields shared by PPO and its relatives, in Stable-Baselines3's words."""

    ortho_init: bool = given()
    learning_rate: float = number(above=0)
    n_steps: int = number(at_least=2)
    batch_size: int = number(at_least=2)
    n_epochs: int = number(at_least=1)
    gamma: float = number(above=0, at_most=1)
    gae_lambda: float = number(at_least=0, at_most=1)
    clip_range: float = number(above=0)
    clip_range_vf: Optional[float] = number(above=0)
    ent_coef: float = number(at_least=0)
    vf_coef: float = number(at_least=0)
    max_grad_norm: Optional[float] = number(above=0)
    target_kl: Optional[float] = number(above=0)


@dataclass
class PPOConfig(OnPolicyConfig):
    """Stable-Baselines3 PPO."""

    normalize_advantage: bool = given()


@dataclass
class A2CConfig(NetworkConfig):
    """Stable-Baselines3 A2C."""

    ortho_init: bool = given()
    learning_rate: float = number(above=0)
    n_steps: int = number(at_least=1)
    gamma: float = number(above=0, at_most=1)
    gae_lambda: float = number(at_least=0, at_most=1)
    ent_coef: float = number(at_least=0)
    vf_coef: float = number(at_least=0)
    max_grad_norm: Optional[float] = number(above=0)
    use_rms_prop: bool = given()
    rms_prop_eps: float = number(above=0)
    normalize_advantage: bool = given()


@dataclass
class RecurrentPPOConfig(PPOConfig):
    """sb3-contrib RecurrentPPO."""

    lstm_hidden_size: int = number(at_least=1)
    n_lstm_layers: int = number(at_least=1)
    shared_lstm: bool = given()
    enable_critic_lstm: bool = given()
    before_lstm: list[int] = field(default_factory=list)
    layer_norm: bool = given()
    critic_trains_lstm: bool = given()


@dataclass
class LCPOConfig(OnPolicyConfig):
    """Loop-clipping policy optimisation."""

    clip_gae: bool = given()
    clip_lae: bool = given()
    clip_n_hop_loops: bool = given()
    clip_termination_loops: bool = given()
    loop_similarity: float = number(above=0, at_most=1)
    advantage_scaling: str = choice("rms", "standard", "none")
    learning_rate_decay_steps: Optional[int] = number(at_least=1)


@dataclass
class TAMConfig(PPOConfig):
    """PPO with a trainable action mask."""

    termination_threshold: float = number(above=0, at_most=1)
    similarity_threshold: float = number(above=0, at_most=1)
    loop_similarity: float = number(above=0, at_most=1)
    mask_after: int = number(at_least=0)
    user_model_hidden: int = number(at_least=1)
    user_model_learning_rate: float = number(above=0)
    user_model_updates: int = number(at_least=1)
    user_model_batch_size: int = number(at_least=1)
    replay_size: int = number(at_least=1)


@dataclass
class SACConfig(NetworkConfig):
    """Stable-Baselines3 SAC."""

    learning_rate: float = number(above=0)
    buffer_size: int = number(at_least=1)
    learning_starts: int = number(at_least=0)
    batch_size: int = number(at_least=1)
    tau: float = number(above=0, at_most=1)
    gamma: float = number(above=0, at_most=1)
    train_freq: int = number(at_least=1)
    gradient_steps: int = number(at_least=-1)
    ent_coef: Any = automatic("auto, auto_0.1, 0.1", at_least=0)
    target_entropy: Any = automatic("auto, -1.0")


@dataclass
class ControllerConfig:
    """A policy that learns nothing."""

    name: str = given()


@dataclass
class RestaurantConfig:
    """The Cambridge-restaurants dialogue task; see ``rlexp.envs.restaurant.env.RestaurantEnv``."""

    name: str = given()
    error_rate: float = number(at_least=0, at_most=1)
    error_model: str = choice("set1", "set3", "random")
    n_best: int = number(at_least=1, at_most=5)
    user: str = choice("sampled", "unfriendly", "default")
    patience: list[int] = field(default_factory=list)
    max_turns: int = number(at_least=1)
    masks: bool = given()
    disabled_actions: list[str] = field(default_factory=list)
    end_on_user_bye: bool = given()
    max_turns_is_truncation: bool = given()
    success_reward: float = number(at_least=0)
    database: Optional[str] = given()
    ontology: Optional[str] = given()
    confusion_seed: Optional[int] = number(at_least=0)


@dataclass
class GymConfig:
    """Any registered gymnasium environment."""

    name: str = given()
    id: str = given()
    kwargs: dict[str, Any] = field(default_factory=dict)


SCHEMAS: dict[str, type] = {
    "schema/config": Config,
    "schema/algo/ppo": PPOConfig,
    "schema/algo/a2c": A2CConfig,
    "schema/algo/recurrent_ppo": RecurrentPPOConfig,
    "schema/algo/sac": SACConfig,
    "schema/algo/lcpo": LCPOConfig,
    "schema/algo/tam": TAMConfig,
    "schema/algo/acer": ACERConfig,
    "schema/algo/dqn": DQNConfig,
    "schema/algo/r2d2": R2D2Config,
    "schema/algo/r2d3": R2D3Config,
    "schema/algo/dqfd": DQfDConfig,
    "schema/algo/bc": BCConfig,
    "schema/algo/sac_lstm": SACLSTMConfig,
    "schema/algo/slac": SLACConfig,
    "schema/algo/controller": ControllerConfig,
    "schema/env/restaurant": RestaurantConfig,
    "schema/env/blind_cliffwalk": BlindCliffwalkConfig,
    "schema/env/minatar": MinAtarConfig,
    "schema/env/atari": AtariConfig,
    "schema/env/partial_pendulum": PartialPendulumConfig,
    "schema/env/partial_cartpole": PartialCartPoleConfig,
    "schema/env/minigrid": MiniGridConfig,
    "schema/env/repeat_previous": RepeatPreviousConfig,
    "schema/env/autoencode": AutoencodeConfig,
    "schema/env/datacenter": DataCenterConfig,
    "schema/env/gym": GymConfig,
}
