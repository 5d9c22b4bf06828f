"""The data centre as a gymnasium environment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from rlexp.envs.datacenter import task
from rlexp.envs.datacenter.controllers import REFERENCES, Reference
from rlexp.envs.datacenter.packages import require_engine
from rlexp.envs.datacenter.weather import Floats, Weather, load, perturbed
from rlexp.errors import did_you_mean

Observation = npt.NDArray[np.float32]
Action = npt.NDArray[np.float32]

BACKENDS = ("engine", "surrogate")
_SUMMED = ("power_kw", "servers_kw", "comfort_west", "comfort_east", "step_reward")


class Backend(Protocol):
    """A year of the plant; see :class:`rlexp.envs.datacenter.engine.Engine`."""

    def begin(self, weather: Weather, n_steps: int) -> Floats:
        """Start a year; outdoor, west and east temperature, power of servers and of cooling."""

    def step(self, setpoints: Sequence[float], flows: Sequence[float]) -> Floats:
        """Hold setpoints and flows for 15 minutes."""

    def own_controllers(self) -> Floats:
        """Leave the next 15 minutes to the plant's own controllers."""

    def close(self) -> None:
        """End the year and leave nothing behind."""


class DataCenterEnv(gymnasium.Env[Observation, Action]):
    """Cool two zones of servers at little power; a year is an episode, and its end a truncation.

    Observation, scaled to [-1, 1] and clipped there: outdoor, west and east temperature, power of the servers (with
    the lights) and of the cooling. Action: supply setpoint west and east (-1 to 1: 10 to 40 degrees), fan west and
    east (1.75 to 7 kg/s); ``None`` throughout a year leaves it to the plant's own controllers. What a step was worth
    is in the observation after it; the server load, which follows the time of day, is in none. A zone above
    :data:`~rlexp.envs.datacenter.task.GUARD` is cooled with all there is, whatever the action.

    The episode's last ``info`` holds the year's means; ``info["period"]`` those of every month as it ends.

    :param backend: ``"engine"``: EnergyPlus in a separate process; ``"surrogate"``: our own model of it
    :param weather: a name or the path of an EPW file, or a list of them that the years go through in turn
    :param weather_noise: standard deviation, in kelvin, by which years differ from their file; 0: the file itself
    :param scaling: how observations are scaled: ``"paper"`` (powers by 1 GW) or ``"informative"``
    :param days: length of a year, from the first of January
    :param timeout_s: seconds after which an engine that does not answer counts as hung
    :raises ValueError: when one of them is not allowed
    """

    metadata = {"render_modes": []}  # noqa: RUF012
    controllers = tuple(REFERENCES)

    def __init__(
        self,
        backend: str = "engine",
        weather: str | Sequence[str] = "stockholm",
        weather_noise: float = 2.0,
        scaling: str = "informative",
        days: int = task.DAYS,
        timeout_s: float = 300.0,
    ) -> None:
        for key, value, allowed in (
            ("backend", backend, BACKENDS),
            ("scaling", scaling, tuple(task.SCALINGS)),
        ):
            if value not in allowed:
                raise ValueError(
                    f"{key}: '{value}' given, allowed are {', '.join(allowed)}{did_you_mean(str(value), allowed)}"
                )
        if backend == "engine":
            require_engine()
        if not 1 <= days <= task.DAYS:
            raise ValueError(f"days: {days} given, must be at least 1 and at most {task.DAYS}")
        if weather_noise < 0:
            raise ValueError(f"weather_noise: {weather_noise} given, must be at least 0")
        names = [weather] if isinstance(weather, str) else list(weather)
        if not names:
            raise ValueError("weather: [] given, at least one weather is needed")
        self.weathers = [load(str(name)) for name in names]
        self.weather_noise = weather_noise
        self.n_steps = days * task.STEPS_PER_DAY
        self.observation_space = spaces.Box(-1.0, 1.0, (5,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (4,), np.float32)
        low, high = task.SCALINGS[scaling]
        self._offset, self._scale = (low + high) / 2, 2.0 / (high - low)
        self._backend = _backend(backend, timeout_s)
        self._year = -1
        self._own_controllers = False
        self._step = self.n_steps
        self._values = np.zeros(5)
        self._references: dict[str, Reference] = {}
        self._sums = np.zeros((12, len(_SUMMED)))

    # --------------------------------------------------------------------------------------------------- gymnasium

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a year: the first one after a seed, else the one that follows."""
        super().reset(seed=seed)
        self._year = 0 if seed is not None else self._year + 1
        file = self.weathers[self._year % len(self.weathers)]
        weather = perturbed(file, self.weather_noise, self.np_random)
        self._step = 0
        self._sums[:] = 0.0
        self._references = {}
        self._values = self._backend.begin(weather, self.n_steps)
        return self._observe(), {"year": self._year, "weather": file.name}

    def step(self, action: Action | None) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Hold an action for 15 minutes.

        :raises ValueError: when the action is not finite, or None in an agent's year
        :raises RuntimeError: when no year is under way
        """
        if self._step >= self.n_steps:
            raise RuntimeError("no year is under way; reset first")
        if self._step == 0:
            self._own_controllers = action is None
        elif self._own_controllers != (action is None):
            raise ValueError(
                f"action={action}: a year is left to the plant's own controllers as a whole or not at all"
            )
        if action is None:
            values = self._backend.own_controllers()
        else:
            west_setpoint, east_setpoint, west_flow, east_flow = np.asarray(action).tolist()
            if not math.isfinite(west_setpoint + east_setpoint + west_flow + east_flow):
                raise ValueError(f"action={action} is not allowed: every entry must be finite")
            if self._values[1] > task.GUARD:
                west_setpoint, west_flow = -1.0, 1.0
            if self._values[2] > task.GUARD:
                east_setpoint, east_flow = -1.0, 1.0
            values = self._backend.step(
                (
                    _stretch(west_setpoint, task.SETPOINT_BOUNDS),
                    _stretch(east_setpoint, task.SETPOINT_BOUNDS),
                ),
                (_stretch(west_flow, task.FLOW_BOUNDS), _stretch(east_flow, task.FLOW_BOUNDS)),
            )
        self._values = values
        _, west, east, servers, cooling = values.tolist()
        reward = task.reward(west, east, servers + cooling)
        low, high = task.COMFORT
        month = task.month_of(self._step)
        sums = self._sums[month]
        sums[0] += servers + cooling
        sums[1] += servers
        sums[2] += low <= west <= high
        sums[3] += low <= east <= high
        sums[4] += reward
        self._step += 1
        over = self._step == self.n_steps
        info: dict[str, Any] = {}
        if over or self._step == task.MONTH_ENDS[month]:
            info = self._report(month, over)
        return self._observe(), reward, False, over, info

    def close(self) -> None:
        """End the engine's process."""
        self._backend.close()

    # ---------------------------------------------------------------------------------------------------- our own

    @property
    def values(self) -> Floats:
        """Last observation in degrees Celsius and watts, ``(5,)``."""
        return self._values

    def controller_action(self, name: str) -> Action | None:
        """Return what a reference controller does now; None: leave it to the plant's own controllers.

        :param name: one of :attr:`controllers`
        """
        reference = self._references.get(name)
        if reference is None:
            reference = self._references[name] = REFERENCES[name]()
        wanted = reference.act(self._values, self._step)
        return None if wanted is None else self.scaled_action(*wanted)

    @staticmethod
    def scaled_action(setpoints: Sequence[float], flows: Sequence[float]) -> Action:
        """Return the action for setpoints in degrees Celsius and flows in kg/s, west and east."""
        return np.array(
            [
                *(_shrink(setpoint, task.SETPOINT_BOUNDS) for setpoint in setpoints),
                *(_shrink(flow, task.FLOW_BOUNDS) for flow in flows),
            ],
            dtype=np.float32,
        )

    def episode_state(self) -> dict[str, Any]:
        """Return what decides the next year beside the generator's state."""
        return {"year": self._year}

    def load_episode_state(self, state: dict[str, Any]) -> None:
        """Take back what :meth:`episode_state` returned."""
        self._year = int(state["year"])

    def _observe(self) -> Observation:
        scaled = (self._values - self._offset) * self._scale
        return np.minimum(np.maximum(scaled, -1.0), 1.0).astype(np.float32)

    def _report(self, month: int, over: bool) -> dict[str, Any]:
        began = task.MONTH_ENDS[month - 1] if month else 0
        info: dict[str, Any] = {
            "period": {"year": self._year, "month": month + 1}
            | _means(self._sums[month], self._step - began),
        }
        if over:
            info |= _means(self._sums.sum(axis=0), self._step)
        return info


def _backend(name: str, timeout_s: float) -> Backend:
    if name == "engine":
        from rlexp.envs.datacenter.engine import Engine

        return Engine(timeout_s)
    from rlexp.envs.datacenter.surrogate import Surrogate

    return Surrogate()


def _means(sums: Floats, n_steps: int) -> dict[str, float]:
    means = dict(zip(_SUMMED, (sums / n_steps).tolist(), strict=True))
    means["power_kw"] /= 1000.0
    means["servers_kw"] /= 1000.0
    means["comfort"] = (means["comfort_west"] + means["comfort_east"]) / 2
    return means


def _stretch(value: float, bounds: tuple[float, float]) -> float:
    low, high = bounds
    return low + (min(max(value, -1.0), 1.0) + 1.0) / 2.0 * (high - low)


def _shrink(value: float, bounds: tuple[float, float]) -> float:
    low, high = bounds
    return 2.0 * (value - low) / (high - low) - 1.0
