"""What DQN and the tasks it is usually tried on can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from omegaconf import MISSING

from rlexp.config.fields import choice, given, number

# OmegaConf reads these annotations at run time and knows Optional[...], not the bar notation.
# ruff: noqa: UP045


@dataclass
class DQNConfig:
    """Deep Q-network; see :class:`rlexp.algos.dqn.DQN`."""

    name: str = given()
    policy: str = choice("auto", "MlpPolicy", "CnnPolicy", "MultiInputPolicy")
    net_arch: Any = MISSING
    activation_fn: str = choice("ReLU", "Tanh", "ELU", "LeakyReLU", "GELU", "SiLU")
    double_q: bool = given()
    dueling: bool = given()
    n_steps: int = number(at_least=1)
    replay: str = choice("uniform", "proportional", "rank")
    alpha: Optional[float] = number(at_least=0, at_most=1)
    beta: Optional[float] = number(at_least=0, at_most=1)
    priority_epsilon: float = number(at_least=0)
    weights_by: str = choice("buffer", "batch")
    sort_every: Optional[int] = number(at_least=1)
    learning_rate: float = number(above=0)
    buffer_size: int = number(at_least=1)
    learning_starts: int = number(at_least=0)
    batch_size: int = number(at_least=1)
    gamma: float = number(above=0, at_most=1)
    train_freq: int = number(at_least=1)
    gradient_steps: int = number(at_least=-1)
    target_update_interval: int = number(at_least=1)
    tau: float = number(above=0, at_most=1)
    exploration_initial_eps: float = number(at_least=0, at_most=1)
    exploration_final_eps: float = number(at_least=0, at_most=1)
    exploration_fraction: float = number(above=0, at_most=1)
    max_grad_norm: Optional[float] = number(above=0)
    reward_clip: Optional[float] = number(above=0)
    td_clip: Optional[float] = number(above=0)
    share_frames: Optional[bool] = given()


@dataclass
class BlindCliffwalkConfig:
    """A chain of states with one right action each; see ``rlexp.envs.blind_cliffwalk.env.BlindCliffwalkEnv``."""

    name: str = given()
    n_states: int = number(at_least=1, at_most=1_000_000)
    layout_seed: int = number(at_least=0)


@dataclass
class MinAtarConfig:
    """A MinAtar game; see :class:`rlexp.envs.minatar.MinAtarEnv`."""

    name: str = given()
    game: str = choice("asterix", "breakout", "freeway", "seaquest", "space_invaders")
    sticky_action_prob: float = number(at_least=0, at_most=1)
    difficulty_ramping: bool = given()
    minimal_actions: bool = given()
    max_steps: Optional[int] = number(at_least=1)


@dataclass
class AtariConfig:
    """An Atari game; see :class:`rlexp.envs.atari.AtariEnv`."""

    name: str = given()
    id: str = given()
    sticky_action_prob: float = number(at_least=0, at_most=1)
    frame_skip: int = number(at_least=1)
    frame_stack: int = number(at_least=1)
    noop_max: int = number(at_least=0)
    max_frames: int = number(at_least=1)
