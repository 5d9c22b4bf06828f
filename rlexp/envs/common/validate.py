"""Everything that an environment returns is validated when it arrives, before anything can store it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from rlexp.errors import InvalidEnvOutput

# A product of zero and infinity below, which is reported better.
warnings.filterwarnings(
    "ignore", "invalid value encountered in dot", RuntimeWarning, "rlexp.envs.common.validate"
)

_LARGEST = float(np.finfo(np.float32).max)  # rewards are stored as float32

Check = Callable[[Any], str | None]
"""Returns what is wrong with a part of an observation, None when nothing is."""


class ValidateOutputs(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Raises as soon as an environment returns what its spaces or gymnasium's interface do not allow.

    Rewards and observations must be finite numbers; observations must have the shape of the observation space and
    values that its dtype can hold (float64 is rounded to float32, as Stable-Baselines3 does, but 0.5 is no uint8).
    The bounds of a ``Box`` are not enforced. What passes is returned as it is. Whatever the environment itself raises
    gets a note that names the environment and the step.

    :param env: the environment
    :param name: what messages call it, e.g. ``"environment 3 (CartPole-v1)"``
    :param metrics: keys of an episode's last ``info`` that must be finite numbers where they are present
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], name: str = "environment", metrics: tuple[str, ...] = ()
    ) -> None:
        super().__init__(env)
        self._name = name
        self._metrics = ("is_success", *metrics)
        self._steps = 0
        self._began = 0  # steps before this episode
        self._failed = False
        self._check = _check_of(env.observation_space)
        space = env.observation_space
        # One comparison and one dot product settle the common case: a product with zero is zero unless the other
        # factor is infinite or NaN.
        self._dtype = space.dtype if isinstance(space, spaces.Box) and len(space.shape) == 1 else None
        self._shape = space.shape
        self._zeros = np.zeros(space.shape or (), np.float32) if self._dtype == np.float32 else None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        :raises InvalidEnvOutput: when the observation or the info is not what it must be
        """
        self._began = self._steps
        try:
            result = self.env.reset(seed=seed, options=options)
        except (Exception, SystemExit) as error:
            self._note(error, self._where("in reset"))
            raise
        if not isinstance(result, tuple) or len(result) != 2:
            raise self._invalid("in reset", f"{_show(result)} returned, must be (observation, info)")
        self._validate(result[0], result[1], "in reset")
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step.

        :raises InvalidEnvOutput: when one of the five values is not what it must be
        """
        self._steps += 1
        try:
            result = self.env.step(action)
        except (Exception, SystemExit) as error:
            self._note(error, self._where())
            raise
        if not isinstance(result, tuple) or len(result) != 5:
            raise self._invalid(
                None, f"{_show(result)} returned, must be (observation, reward, terminated, truncated, info)"
            )
        observation, reward, terminated, truncated, info = result
        if type(reward) is not float or not -_LARGEST <= reward <= _LARGEST:
            self._validate_number("reward", reward)
        if terminated is not False or truncated is not False:
            self._validate_end(terminated, truncated, info)
        if not (
            self._zeros is not None
            and type(observation) is np.ndarray
            and observation.dtype == self._dtype
            and observation.shape == self._shape
            and not observation.dot(self._zeros)
            and isinstance(info, dict)
        ):
            self._validate(observation, info)
        return result

    def close(self) -> None:
        """Close the environment; one that has failed already may fail again in silence, the first error counts."""
        try:
            super().close()
        except Exception as error:
            if not self._failed:
                self._note(error, f"{self._name}, in close")
                raise

    def _validate(self, observation: Any, info: Any, moment: str | None = None) -> None:
        problem = self._check(observation)
        if problem is not None:
            raise self._invalid(moment, f"observation{problem}")
        if not isinstance(info, dict):
            raise self._invalid(moment, f"info: {_show(info)} returned, must be a dict")

    def _validate_end(self, terminated: Any, truncated: Any, info: Any) -> None:
        for name, value in (("terminated", terminated), ("truncated", truncated)):
            if not isinstance(value, (bool, np.bool_)):
                raise self._invalid(None, f"{name}: {_show(value)} returned, must be True or False")
        if (terminated or truncated) and isinstance(info, dict):
            for key in self._metrics:
                if key in info:
                    self._validate_number(f"info['{key}']", info[key])

    def _validate_number(self, name: str, value: Any) -> None:
        number: float | None
        try:
            number = None if isinstance(value, str) or np.ndim(value) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None or not -_LARGEST <= number <= _LARGEST:
            raise self._invalid(None, f"{name}: {_show(value)} returned, must be one finite number (float32)")

    def _where(self, moment: str | None = None) -> str:
        within = f"step {self._steps - self._began} of its episode"
        return f"{self._name}, step {self._steps} ({moment or within})"

    def _invalid(self, moment: str | None, problem: str) -> InvalidEnvOutput:
        self._failed = True
        return InvalidEnvOutput(f"{self._where(moment)}: {problem}")

    def _note(self, error: BaseException, where: str) -> None:
        self._failed = True
        error.add_note(where)


# ---------------------------------------------------------------------------------------------------- observations


def _check_of(space: spaces.Space[Any]) -> Check:
    """Return the check of one space's elements."""
    if isinstance(space, spaces.Dict):
        parts = {key: _check_of(part) for key, part in space.spaces.items()}
        return lambda value: _problem_of_dict(value, parts)
    if isinstance(space, spaces.Box):
        return lambda value: _problem_of_array(value, space.shape, space.dtype)
    if isinstance(space, spaces.Discrete):
        first, last = int(space.start), int(space.start + space.n) - 1
        return lambda value: (
            _problem_of_array(value, (), np.dtype(np.int64)) or _problem_of_range(value, first, last)
        )
    if isinstance(space, spaces.MultiDiscrete):
        low, high = space.start, space.start + space.nvec - 1
        return lambda value: (
            _problem_of_array(value, space.shape, space.dtype) or _problem_of_range(value, low, high)
        )
    if isinstance(space, spaces.MultiBinary):
        return lambda value: (
            _problem_of_array(value, space.shape, space.dtype) or _problem_of_range(value, 0, 1)
        )
    return lambda value: None if space.contains(value) else f": {_show(value)} returned, must be in {space}"


def _problem_of_dict(value: Any, parts: Mapping[str, Check]) -> str | None:
    if not isinstance(value, Mapping):
        return f": {_show(value)} returned, must be a dict with {', '.join(parts)}"
    for key, check in parts.items():
        problem = check(value[key]) if key in value else ": missing"
        if problem is not None:
            return f"['{key}']{problem}"
    return None


def _problem_of_array(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> str | None:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # e.g. a ragged list
        return f": {_show(value)} returned, must be an array of shape {shape} and {dtype}"
    if array.shape != shape or array.dtype.kind not in "biuf":
        return f": {_show(value)} returned, must be an array of shape {shape} and {dtype}"
    with np.errstate(all="ignore"):
        stored: npt.NDArray[Any] = array.astype(dtype, copy=False)
    if not np.can_cast(array.dtype, dtype, "same_kind") and not np.array_equal(stored, array):
        return f": {array.dtype} returned, with values that the space's {dtype} cannot hold"
    if stored.dtype.kind == "f":
        wrong = np.count_nonzero(~np.isfinite(stored))
        if wrong:
            return f": {wrong} of {stored.size} numbers not finite in {dtype} ({_show(value)})"
    return None


def _problem_of_range(value: Any, low: Any, high: Any) -> str | None:
    array = np.asarray(value)
    if np.all((array >= low) & (array <= high)):
        return None
    return f": {_show(value)} returned, must be from {low} to {high}"


def _show(value: Any) -> str:
    """Return a value as one short piece of text; of arrays, what they are and their first numbers."""
    if isinstance(value, np.ndarray):
        first = np.array2string(value.reshape(-1)[:4], separator=", ")[1:-1].replace("\n", "")
        dots = ", ..." if value.size > 4 else ""
        return f"array of shape {value.shape} and {value.dtype} [{first}{dots}]"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return text if value is None else f"{text} ({type(value).__name__})"
