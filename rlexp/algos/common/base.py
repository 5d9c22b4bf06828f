"""What every algorithm here adds to Stable-Baselines3's base class: validation, with errors of one line."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy

from rlexp.config.validate import former_names, validate
from rlexp.errors import UsageError, did_you_mean

# Arguments that Stable-Baselines3 passes to a policy itself.
_PASSED_BY_ALGORITHM = ("self", "observation_space", "action_space", "lr_schedule", "use_sde")


class ValidatedAlgorithm(BaseAlgorithm):
    """Mixin that comes before Stable-Baselines3's class."""

    config: ClassVar[type[Any] | None] = None
    """Dataclass of its settings; constructor and command line check the same ranges."""

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        """Reject settings under a former name, and name the new one."""
        cls._check_names(settings)
        cls._check_names(settings.get("policy_kwargs") or {})
        return super().__new__(cls)

    @classmethod
    def _check_names(cls, settings: Mapping[str, Any]) -> None:
        names = {} if cls.config is None else former_names(cls.config)
        for name in settings:
            if name in names:
                raise UsageError(f"{name}: is now called {names[name]}")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(*args, **kwargs)
        except ValueError as error:
            # Stable-Baselines3 would recommend a policy that this class does not have.
            if "`MultiInputPolicy`" not in str(error) or "MultiInputPolicy" in self.policy_aliases:
                raise
            name = type(self).__name__
            raise UsageError(
                f"{name} reads no dictionaries, the environment has {_line(self.observation_space)}"
            ) from error

    @classmethod
    def load(cls, path: Any, env: Any = None, *args: Any, **kwargs: Any) -> Self:
        """Load a model as :meth:`stable_baselines3.common.base_class.BaseAlgorithm.load` does.

        Without ``env`` nothing checks that the model acts in the environment it was trained on: actions are numbers,
        which may have another meaning elsewhere.

        :raises UsageError: when the model was trained with other spaces than those of ``env``
        """
        try:
            return super().load(path, env, *args, **kwargs)
        except ValueError as error:
            raise _explained(error, cls) from error

    def set_env(self, env: Any, force_reset: bool = True) -> None:
        """Set the environment as Stable-Baselines3 does.

        :raises UsageError: when the model was built with other spaces
        """
        try:
            super().set_env(env, force_reset)
        except ValueError as error:
            raise _explained(error, type(self)) from error

    def _get_policy_from_name(self, policy_name: str) -> type[BasePolicy]:
        if policy_name not in self.policy_aliases:
            known = ", ".join(self.policy_aliases)
            nearest = did_you_mean(policy_name, self.policy_aliases)
            raise UsageError(
                f"policy: '{policy_name}' given, {type(self).__name__} supports {known}{nearest}"
            )
        return self.policy_aliases[policy_name]

    def _setup_model(self) -> None:
        self._validate()
        super()._setup_model()  # type: ignore[safe-super]

    def _validate(self) -> None:
        """Check the constructor's arguments; an algorithm with its own ``_setup_model`` calls this first.

        :raises UsageError: naming the setting
        """
        for before, now in former_names(self.config).items() if self.config is not None else ():
            for settings in (vars(self), self.policy_kwargs):  # an older archive has just been loaded
                if before in settings:
                    settings[now] = settings.pop(before)
        self._validate_policy_kwargs()
        if self.config is not None:
            buffer_kwargs = getattr(self, "replay_buffer_kwargs", None) or {}
            validate(self.config, {**buffer_kwargs, **self.policy_kwargs, **vars(self)}, self.n_envs)

    def _validate_policy_kwargs(self) -> None:
        parameters = inspect.signature(self.policy_class).parameters
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            return
        known = [name for name in parameters if name not in _PASSED_BY_ALGORITHM]
        for name in self.policy_kwargs:
            if name not in parameters:
                raise UsageError(
                    f"policy_kwargs: '{name}' given, {self.policy_class.__name__} supports {', '.join(known)}"
                    f"{did_you_mean(name, known)}"
                )


def _explained(error: ValueError, algorithm: type[Any]) -> ValueError:
    if "spaces do not match" not in str(error):
        return error
    return UsageError(
        f"env: {algorithm.__name__} was trained with other spaces ({_line(error)}); build the environment with the "
        "arguments that training used: a run's are in its config.yaml, under env"
    )


def policy_by_shape(observation_space: spaces.Space[Any]) -> str:
    """Return the policy for some observations; whatever has three dimensions is an image.

    :param observation_space: of the environment
    """
    if isinstance(observation_space, spaces.Dict):
        return "MultiInputPolicy"
    return "CnnPolicy" if len(observation_space.shape or ()) == 3 else "MlpPolicy"


def require_discrete_vectors(
    name: str, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]
) -> None:
    """Check that an environment has discrete actions and observations in one vector.

    :param name: of the algorithm
    :param observation_space: of the environment
    :param action_space: of the environment
    :raises UsageError: naming the space
    """
    if not isinstance(action_space, spaces.Discrete):
        raise UsageError(f"{name} needs discrete actions, the environment has {_line(action_space)}")
    if isinstance(observation_space, (spaces.Dict, spaces.Tuple)) or len(observation_space.shape or ()) == 3:
        raise UsageError(
            f"{name} needs observations in one vector, the environment has {_line(observation_space)}"
        )


def _line(value: Any) -> str:
    """Return a text in one line, shortened in the middle if it is long."""
    text = " ".join(str(value).split())
    return text if len(text) <= 200 else f"{text[:100]} ... {text[-100:]}"


def reject_reset_result(observation: Any) -> None:
    """Check that an argument of ``predict`` is an observation and not what gymnasium's ``reset`` returns.

    :raises ValueError: as Stable-Baselines3 does
    """
    if isinstance(observation, tuple) and len(observation) == 2 and isinstance(observation[1], dict):
        raise ValueError(
            "You have passed a tuple to the predict() function instead of a Numpy array or a Dict. You are probably "
            "mixing Gym API with SB3 VecEnv API: `obs, info = env.reset()` (Gym) vs `obs = vec_env.reset()` (SB3)."
        )
