"""Pendulum and CartPole of which only positions or only velocities are observed (Han et al. 2020, Ni et al. 2022)."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.envs.classic_control import CartPoleEnv, PendulumEnv

from rlexp.errors import UsageError, did_you_mean

Vector = npt.NDArray[np.float32]
Halves = dict[str, tuple[int, ...]]

# Which entries of the full observation stay.
PENDULUM: Halves = {"positions": (0, 1), "velocities": (2,)}  # cos θ, sin θ | dθ/dt
CARTPOLE: Halves = {"positions": (0, 2), "velocities": (1, 3)}  # x, θ | dx/dt, dθ/dt


class Part(gymnasium.ObservationWrapper[Vector, Any, Vector]):
    """Some entries of the observation.

    :param env: its observations are vectors
    :param entries: which ones stay, in this order
    """

    def __init__(self, env: gymnasium.Env[Any, Any], entries: tuple[int, ...]) -> None:
        super().__init__(env)
        self._entries = list(entries)
        space = env.observation_space
        assert isinstance(space, spaces.Box)
        self.observation_space = spaces.Box(space.low[self._entries], space.high[self._entries])

    def observation(self, observation: Vector) -> Vector:
        """Return what is left of an observation."""
        return observation[self._entries]


class RewardSeen(gymnasium.Wrapper[Vector, Any, Vector, Any]):
    """The observation and, behind it, the reward of the step before; 0 when an episode begins.

    So do those who published the tasks: Ni et al. feed it to the memory, Han et al. make it a part of the observation.

    :param env: its observations are vectors
    :param lowest: lowest reward of a step
    :param highest: highest reward of a step
    """

    def __init__(self, env: gymnasium.Env[Vector, Any], lowest: float, highest: float) -> None:
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, spaces.Box)
        self.observation_space = spaces.Box(
            np.append(space.low, np.float32(lowest)), np.append(space.high, np.float32(highest))
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        seen, info = self.env.reset(seed=seed, options=options)
        return np.append(seen, np.float32(0)), info

    def step(self, action: Any) -> tuple[Vector, Any, bool, bool, dict[str, Any]]:
        """Step the environment."""
        seen, reward, terminated, truncated, info = self.env.step(action)
        return np.append(seen, np.float32(reward)), reward, terminated, truncated, info


class ContinuousForce(gymnasium.Wrapper[Any, Any, Any, Any]):
    """CartPole pushed with any force from -10 to 10 N, an action in [-1, 1] being the share of it.

    :param env: gymnasium's CartPole, unwrapped
    """

    def __init__(self, env: CartPoleEnv) -> None:
        super().__init__(env)
        self._cartpole = env
        self._strongest = env.force_mag
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def step(self, action: npt.NDArray[Any]) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Push; the simulation knows two directions of one strength, so the strength is set and has the sign."""
        share = float(np.clip(np.asarray(action).reshape(-1)[0], -1.0, 1.0))
        self._cartpole.force_mag = self._strongest * share
        found: tuple[Any, Any, bool, bool, dict[str, Any]] = self._cartpole.step(1)  # type: ignore[no-untyped-call]
        return found


def pendulum(observed: str, max_steps: int = 200, reward_seen: bool = False) -> gymnasium.Env[Any, Any]:
    """Build Pendulum with half of its state observed.

    :param observed: ``"positions"`` (cosine and sine of the angle) or ``"velocities"`` (the angular one)
    :param max_steps: time limit of an episode; published: 200
    :param reward_seen: whether the reward of the step before is observed, too
    :raises UsageError: when nothing is called ``observed``
    """
    whole = PendulumEnv()
    task: gymnasium.Env[Vector, Any] = Part(whole, _entries(observed, PENDULUM))
    if reward_seen:
        lowest = math.pi**2 + 0.1 * whole.max_speed**2 + 0.001 * whole.max_torque**2
        task = RewardSeen(task, -lowest, 0.0)
    return gymnasium.wrappers.TimeLimit(task, max_steps)


def cartpole(observed: str, actions: str = "continuous", max_steps: int = 500) -> gymnasium.Env[Any, Any]:
    """Build CartPole with half of its state observed.

    :param observed: ``"positions"`` (of cart and pole) or ``"velocities"``
    :param actions: ``"continuous"``: any force up to 10 N; ``"discrete"``: 10 N left or right, as in gymnasium
    :param max_steps: time limit of an episode; gymnasium's CartPole-v1: 500
    :raises UsageError: when nothing is called ``observed`` or ``actions``
    """
    if actions not in ("continuous", "discrete"):
        raise UsageError(f"env.actions: '{actions}' given, allowed are continuous, discrete")
    pole = CartPoleEnv()
    task = Part(ContinuousForce(pole) if actions == "continuous" else pole, _entries(observed, CARTPOLE))
    return gymnasium.wrappers.TimeLimit(task, max_steps)


def _entries(observed: str, known: Halves) -> tuple[int, ...]:
    if observed not in known:
        raise UsageError(
            f"env.observed: '{observed}' given, allowed are {', '.join(known)}{did_you_mean(observed, known)}"
        )
    return known[observed]
