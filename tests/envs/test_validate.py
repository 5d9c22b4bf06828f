"""What an environment must not return is named when it arrives; everything else passes untouched."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rlexp.envs.common.validate import ValidateOutputs
from rlexp.errors import InvalidEnvOutput
from tests.faulty import OBSERVATION_FAULTS, SPACES, STEP_FAULTS, Faulty, OddError


def _play(env: gymnasium.Env[Any, Any], steps: int) -> None:
    env.reset(seed=0)
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(0)
        if terminated or truncated:
            env.reset()


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("fault", [*STEP_FAULTS, *OBSERVATION_FAULTS])
def test_a_fault_is_named_with_environment_and_step(fault: str, space: str) -> None:
    env = ValidateOutputs(Faulty(fault, at=13, space=space), "environment 3 (Faulty-v0)")
    with pytest.raises(InvalidEnvOutput, match="^" + "environment 3") as caught:
        _play(env, 20)
    message = str(caught.value)
    assert message.startswith("environment 3 (Faulty-v0), step 13 (step 3 of its episode): ")
    part = next((part for part in ("reward", "terminated", "truncated", "is_success") if part in fault), None)
    assert part is None or part in message
    assert fault not in OBSERVATION_FAULTS or "observation" in message
    assert "\n" not in message and len(message) < 400


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("fault", [*OBSERVATION_FAULTS, "info None", "nothing", "six values", "a number"])
def test_a_fault_in_reset(fault: str, space: str) -> None:
    env = ValidateOutputs(Faulty(fault, at=0, reset=2, space=space))
    with pytest.raises(InvalidEnvOutput, match=r"^environment, step 10 \(in reset\): "):
        _play(env, 20)


def test_what_the_environment_raises_stays_what_it_is() -> None:
    env = ValidateOutputs(Faulty("raise odd", at=2), "environment 1 (Faulty-v0)")
    with pytest.raises(OddError, match="no door between kitchen and hall") as caught:
        _play(env, 5)
    assert caught.value.__notes__ == ["environment 1 (Faulty-v0), step 2 (step 2 of its episode)"]
    assert caught.traceback[-1].name == "_end_if_due"


def test_closing_an_environment_that_has_failed_hides_nothing() -> None:
    env = ValidateOutputs(Faulty("close raise unused"))
    with pytest.raises(OSError, match="socket is gone") as caught:
        env.close()
    assert caught.value.__notes__ == ["environment, in close"]
    failed = ValidateOutputs(Faulty("close raise unused"))
    with pytest.raises(gymnasium.error.Error, match="Seed"):
        failed.reset(seed=-1)
    failed.close()


def _says(space: spaces.Space[Any], observation: Any, reward: Any = 0.0, info: Any = None) -> str | None:
    """What is said of one step, None when it passes; what passes must be the same objects."""

    class One(gymnasium.Env[Any, Any]):
        observation_space = space
        action_space = spaces.Discrete(2)
        result = (observation, reward, False, True, {} if info is None else info)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return observation, {}

        def step(self, action: Any) -> Any:
            return self.result

    env = ValidateOutputs(One(), metrics=("score",))
    try:
        result = env.step(0)
    except InvalidEnvOutput as error:
        return str(error).partition("): ")[2]
    assert result is One.result
    return None


_BOX = spaces.Box(-1, 1, (2,), np.float32)
_BYTES = spaces.Box(0, 255, (2,), np.uint8)


@pytest.mark.parametrize(
    ("space", "observation", "expected"),
    [
        (_BOX, np.array([0.5, -5], np.float32), None),  # bounds are not enforced
        (_BOX, np.array([0.1, 0.2]), None),  # float64 is rounded
        (_BOX, np.array([1, 2]), None),
        (_BOX, [0.1, 0.2], None),
        (_BOX, np.array([3e38, 3e38], np.float32), None),
        (_BOX, np.zeros((2, 4), np.float32)[:, 0], None),  # not contiguous
        (_BOX, np.array([np.nan, 0], np.float32), "1 of 2 numbers not finite in float32"),
        (_BOX, np.array([0, np.inf], np.float32), "1 of 2 numbers not finite in float32"),
        (_BOX, np.array([0, 1e39]), "1 of 2 numbers not finite in float32"),
        (_BOX, np.zeros(3, np.float32), "must be an array of shape (2,) and float32"),
        (_BOX, np.full((2, 4), np.inf, np.float32)[:, 0], "2 of 2 numbers not finite"),
        (_BOX, 0.5, "must be an array of shape (2,) and float32"),
        (_BYTES, np.array([0, 255]), None),  # int64 whose values fit
        (_BYTES, np.array([7.0, 8.0]), None),
        (_BYTES, np.array([0, 256]), "int64 returned, with values that the space's uint8 cannot hold"),
        (_BYTES, np.array([0, -1]), "values that the space's uint8 cannot hold"),
        (_BYTES, np.array([0.5, 0]), "values that the space's uint8 cannot hold"),
        (_BYTES, np.array([np.nan, 0]), "values that the space's uint8 cannot hold"),
        (spaces.Box(-1, 1, (), np.float64), np.float64(0.3), None),
        (spaces.Box(-1, 1, (2, 2), np.float32), np.full((2, 2), np.nan, np.float32), "4 of 4 numbers"),
        (spaces.Discrete(3, start=-1), 1, None),
        (spaces.Discrete(3, start=-1), np.int64(-1), None),
        (spaces.Discrete(3, start=-1), np.array(0), None),
        (spaces.Discrete(3, start=-1), 2, "2 (int) returned, must be from -1 to 1"),
        (spaces.Discrete(3), 1.5, "cannot hold"),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 2]), None),
        (spaces.MultiDiscrete([2, 3]), np.array([2, 2]), "must be from [0 0] to [1 2]"),
        (spaces.MultiBinary(2), np.array([1, 0], np.int8), None),
        (spaces.MultiBinary(2), np.array([1, 2], np.int8), "must be from 0 to 1"),
        (spaces.Dict({"a": _BOX, "b": spaces.Discrete(2)}), {"a": np.zeros(2, np.float32), "b": 1, "more": 3}, None),
        (spaces.Dict({"a": _BOX, "b": spaces.Discrete(2)}), {"a": np.zeros(2, np.float32)}, "['b']: missing"),
        (spaces.Dict({"a": _BOX}), {"a": np.full(2, np.nan, np.float32)}, "observation['a']: 2 of 2 numbers"),
        (spaces.Text(3), "abc", None),
        (spaces.Text(3), 5, "must be in Text"),
    ],
)  # fmt: skip
def test_observations(space: spaces.Space[Any], observation: Any, expected: str | None) -> None:
    found = _says(space, observation)
    assert found is None if expected is None else expected in (found or ""), found


@pytest.mark.parametrize("reward", [1, -2.5, True, np.float32(1), np.float64(-1), np.int64(3), np.array(0.5)])
def test_rewards_that_are_numbers(reward: Any) -> None:
    assert _says(_BOX, np.zeros(2, np.float32), reward) is None


@pytest.mark.parametrize(
    ("info", "passes"),
    [
        ({"is_success": True, "score": 1}, True),
        ({"is_success": np.bool_(False), "score": np.float32(0.5)}, True),
        ({"score": float("nan")}, False),
        ({"is_success": None}, False),
        ({"other": float("nan")}, True),
    ],
)
def test_metrics_at_the_end_of_an_episode(info: dict[str, Any], passes: bool) -> None:
    assert (_says(_BOX, np.zeros(2, np.float32), info=info) is None) == passes
