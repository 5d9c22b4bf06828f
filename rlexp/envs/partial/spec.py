"""What the runner knows of the partially observed control tasks before they are imported."""

from __future__ import annotations

from dataclasses import dataclass

from rlexp.config.fields import choice, number, required
from rlexp.registry import EnvSpec


@dataclass
class PartialPendulumConfig:
    """Settings of :func:`rlexp.envs.partial.env.pendulum`."""

    name: str = required()
    observed: str = choice("positions", "velocities")
    max_steps: int = number(at_least=1)
    reward_seen: bool = required()


@dataclass
class PartialCartPoleConfig:
    """Settings of :func:`rlexp.envs.partial.env.cartpole`."""

    name: str = required()
    observed: str = choice("positions", "velocities")
    actions: str = choice("continuous", "discrete")
    max_steps: int = number(at_least=1)


SPECS = (
    EnvSpec(
        "pendulum_p",
        "rlexp.envs.partial.env:pendulum",
        "Pendulum, only the angle observed",
        actions="continuous",
        observations="vector",
        config=PartialPendulumConfig,
    ),
    EnvSpec(
        "pendulum_v",
        "rlexp.envs.partial.env:pendulum",
        "Pendulum, only the angular velocity observed",
        actions="continuous",
        observations="vector",
        config=PartialPendulumConfig,
    ),
    EnvSpec(
        "cartpole_p",
        "rlexp.envs.partial.env:cartpole",
        "CartPole, only positions observed; continuous force, or env.actions=discrete",
        observations="vector",
        config=PartialCartPoleConfig,
    ),
    EnvSpec(
        "cartpole_v",
        "rlexp.envs.partial.env:cartpole",
        "CartPole, only velocities observed; continuous force, or env.actions=discrete",
        observations="vector",
        config=PartialCartPoleConfig,
    ),
)
