"""An environment that does one thing wrong, once, at a chosen step; importable by child processes.

``env.id=tests.faulty:Faulty-v0 env.kwargs={fault: nan reward, at: 100, space: vector}``
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

Step = list[Any]  # observation, reward, terminated, truncated, info

SPACES: dict[str, Callable[[], spaces.Space[Any]]] = {
    "vector": lambda: spaces.Box(-1, 1, (3,), np.float32),
    "image": lambda: spaces.Box(0, 255, (3, 36, 36), np.uint8),
    "dict": lambda: spaces.Dict({"a": spaces.Box(-1, 1, (3,), np.float32), "b": spaces.Discrete(4)}),
    "discrete": lambda: spaces.Discrete(5),
}

STEP_FAULTS: dict[str, Callable[[Step], Any]] = {
    "nan reward": lambda s: [s[0], float("nan"), *s[2:]],
    "inf reward": lambda s: [s[0], float("inf"), *s[2:]],
    "numpy -inf reward": lambda s: [s[0], np.float32("-inf"), *s[2:]],
    "reward beyond float32": lambda s: [s[0], 1e300, *s[2:]],
    "reward None": lambda s: [s[0], None, *s[2:]],
    "reward text": lambda s: [s[0], "1.0", *s[2:]],
    "reward array": lambda s: [s[0], np.zeros(2), *s[2:]],
    "reward array of one": lambda s: [s[0], np.ones(1), *s[2:]],
    "reward complex": lambda s: [s[0], 1j, *s[2:]],
    "terminated None": lambda s: [*s[:2], None, *s[3:]],
    "terminated text": lambda s: [*s[:2], "no", *s[3:]],
    "terminated number": lambda s: [*s[:2], 0, *s[3:]],
    "terminated array": lambda s: [*s[:2], np.zeros(2, bool), *s[3:]],
    "truncated nan": lambda s: [*s[:3], float("nan"), s[4]],
    "info None": lambda s: [*s[:4], None],
    "info list": lambda s: [*s[:4], []],
    "four values": lambda s: s[:4],
    "six values": lambda s: [*s, 0],
    "nothing": lambda s: None,
    "a number": lambda s: 3.5,
    "nan is_success": lambda s: [*s[:2], True, False, {"is_success": float("nan")}],
    "text is_success": lambda s: [*s[:2], True, False, {"is_success": "yes"}],
}
"""What happens to the result of ``step``."""


def _changed(observation: Any, change: Callable[[Any], Any]) -> Any:
    return (
        {**observation, "a": change(observation["a"])}
        if isinstance(observation, dict)
        else change(observation)
    )


def _with(value: float) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array = np.array(array, dtype=np.float32)
        array.reshape(-1)[-1] = value
        return array

    return change


OBSERVATION_FAULTS: dict[str, Callable[[Any], Any]] = {
    "observation None": lambda o: None,
    "observation text": lambda o: "left",
    "observation empty": lambda o: _changed(o, lambda a: np.zeros((0,), np.float32)),
    "observation too long": lambda o: _changed(o, lambda a: np.zeros((4,), np.float32)),
    "observation of one number": lambda o: _changed(o, lambda a: np.zeros((1,), np.float32)),
    "observation of two axes": lambda o: _changed(o, lambda a: np.zeros((3, 1), np.float32)),
    "nan observation": lambda o: _changed(o, _with(float("nan"))),
    "inf observation": lambda o: _changed(o, _with(float("-inf"))),
    "observation beyond float32": lambda o: _changed(o, lambda a: np.full((3,), 1e300)),
    "observation of objects": lambda o: _changed(o, lambda a: np.array([None, None, None])),
    "observation of texts": lambda o: _changed(o, lambda a: np.array(["a", "b", "c"])),
    "observation of complex numbers": lambda o: _changed(o, lambda a: np.zeros(3, np.complex64)),
    "observation ragged": lambda o: _changed(o, lambda a: [[1, 2], [3]]),
}
"""What happens to an observation, of ``step`` or of ``reset``; of a dictionary, to its part ``a``."""

ENDINGS = ("raise", "raise odd", "hang", "exit", "sys.exit", "kill", "close raise", "close raise unused")


class OddError(Exception):
    """Cannot be built from its own arguments, so that it survives no pickling."""

    def __init__(self, room: str, hall: str) -> None:
        super().__init__(f"no door between {room} and {hall}")


class Faulty(gymnasium.Env[Any, Any]):
    """Ten steps an episode; faulty once, at one step counted over all episodes, or at a reset.

    :param fault: a key of :data:`STEP_FAULTS`, :data:`OBSERVATION_FAULTS`, one of :data:`ENDINGS`, or None
    :param at: step at which it happens, counted from 1 over all episodes; 0: in ``reset``
    :param reset: with ``at=0``: which reset, counted from 1
    :param space: one of :data:`SPACES`
    :param continuous: whether actions are
    :param mended: a file; where it exists nothing is wrong
    :param only: which of this process's environments is faulty, in the order of their first resets, counted from 0;
        None: all of them
    :param at_build: raise an error when so many have been built
    """

    built = 0
    begun = 0

    def __init__(
        self,
        fault: str | None = None,
        at: int = 5,
        reset: int = 1,
        space: str = "vector",
        continuous: bool = False,
        mended: str | None = None,
        only: int | None = None,
        at_build: str | None = None,
    ) -> None:
        if at_build is not None and Faulty.built >= int(at_build):
            raise RuntimeError("no licence for the simulator")
        self.observation_space = SPACES[space]()
        self.action_space = spaces.Box(-1, 1, (1,), np.float32) if continuous else spaces.Discrete(2)
        self.fault = fault
        self.only = only
        Faulty.built += 1
        if mended is not None and Path(mended).exists():
            self.fault = None
        self.at, self.at_reset = at, reset
        self.steps = self.resets = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        if self.resets == 0:
            if self.only is not None and self.only != Faulty.begun:
                self.fault = None
            Faulty.begun += 1
        self.resets += 1
        self.length = 0
        observation = self._observe()
        if self.at == 0 and self.resets == self.at_reset:
            self._end_if_due()
            if self.fault in OBSERVATION_FAULTS:
                return OBSERVATION_FAULTS[self.fault](observation), {}
            if self.fault in STEP_FAULTS:
                return {
                    "info None": (observation, None),
                    "nothing": None,
                    "six values": (observation, {}, 0),
                }.get(self.fault, observation)
        return observation, {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        self.length += 1
        result = [self._observe(), float(self.np_random.random()), False, self.length >= 10, {}]
        if self.steps != self.at:
            return tuple(result)
        self._end_if_due()
        if self.fault in OBSERVATION_FAULTS:
            result[0] = OBSERVATION_FAULTS[self.fault](result[0])
        if self.fault in STEP_FAULTS:
            changed = STEP_FAULTS[self.fault](result)
            return tuple(changed) if isinstance(changed, list) else changed
        return tuple(result)

    def close(self) -> None:
        if self.fault == "close raise unused" or (self.fault == "close raise" and self.steps):
            raise OSError("the simulator's socket is gone")

    def _observe(self) -> Any:
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample()

    def _end_if_due(self) -> None:
        if self.fault == "raise":
            raise ArithmeticError("the pole went through the floor")
        if self.fault == "raise odd":
            raise OddError("kitchen", "hall")
        if self.fault == "hang":
            Path("hanging").touch()
            time.sleep(3600)
        if self.fault == "exit":
            os._exit(7)
        if self.fault == "sys.exit":
            sys.exit(3)
        if self.fault == "kill":
            os.kill(os.getpid(), 9)


gymnasium.register("Faulty-v0", entry_point=Faulty, disable_env_checker=True)
gymnasium.register(
    "Faulty-v1", entry_point=Faulty, max_episode_steps=50
)  # with the wrappers that most environments have
