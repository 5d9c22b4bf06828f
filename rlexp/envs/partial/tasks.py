"""Pendulum and CartPole of which only positions or only velocities are seen (Han et al. 2020, Ni et al. 2022)."""

from __future__ import annotations

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
    """Shows some entries of a vector only.

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


def pendulum(observed: str, max_steps: int = 200) -> gymnasium.Env[Any, Any]:
    """Build the swing-up of which half is seen.

    :param observed: ``"positions"`` (cosine and sine of the angle) or ``"velocities"`` (the angular one)
    :param max_steps: time limit of an episode; published: 200
    :raises UsageError: when nothing is called ``observed``
    """
    task = Part(PendulumEnv(), _entries(observed, PENDULUM))
    return gymnasium.wrappers.TimeLimit(task, max_steps)


def cartpole(observed: str, actions: str = "continuous", max_steps: int = 500) -> gymnasium.Env[Any, Any]:
    """Build the pole of which half is seen.

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
