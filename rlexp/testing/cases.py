"""What a contract is checked on: one algorithm with small settings on one kind of tiny task."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import torch as th
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv

from rlexp.algos.common.build import build
from rlexp.envs.common.episode_replay import EpisodeReplay
from rlexp.registry import AlgoSpec, load
from rlexp.runs import checkpoint
from rlexp.runs.evaluation import Evaluator
from rlexp.testing import toy_environments

STEPS = 48
"""Steps of a training: six episodes or more."""

_FAST = {"learning_rate": 0.03}  # so that one update changes what a policy does
_ROLLOUTS = {**_FAST, "n_steps": 8, "batch_size": 8, "n_epochs": 1, "net_arch": [8]}
_OFF_POLICY = {**_FAST, "learning_starts": 12, "buffer_size": 40, "batch_size": 4, "train_freq": 4}
_REPLAY = {**_OFF_POLICY, "batch_size": 8, "net_arch": [8]}
_SEQUENCES = {**_FAST, "sequence_length": 4, "batch_size": 2, "net_arch": [8], "lstm_hidden_size": 8}
# Small enough for training in a tenth of a second that covers everything an algorithm does: updates, a replay buffer
# that wraps, updates of target networks, pre-training.
SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": _ROLLOUTS,
    "a2c": {**_FAST, "n_steps": 4, "net_arch": [8]},
    "recurrent_ppo": {**_ROLLOUTS, "lstm_hidden_size": 8},
    "lcpo": _ROLLOUTS,
    "tam": {**_ROLLOUTS, "user_model_updates": 2, "user_model_batch_size": 8, "buffer_size": 30, "mask_after": 16},
    "acer": {
        **_FAST, "n_steps": 4, "batch_size": 2, "learning_starts": 12, "buffer_size": 40, "replay_ratio": 1,
        "net_arch": [8], "lstm_hidden_size": 8,
    },
    "sac": _REPLAY,
    "dqn": {**_REPLAY, "n_steps": 2, "target_update_interval": 8, "exploration_fraction": 0.5},
    "dqfd": {**_REPLAY, "n_steps": 2, "target_update_interval": 8, "pretrain_updates": 3},
    "r2d2": {**_REPLAY, **_SEQUENCES, "burn_in": 1, "n_steps": 2, "target_update_interval": 2},
    "r2d3": {
        **_REPLAY, **_SEQUENCES, "burn_in": 1, "n_steps": 2, "target_update_interval": 2, "pretrain_updates": 3,
    },
    "bc": {**_SEQUENCES, "updates_per_round": 2},
    "sac_lstm": {
        **_OFF_POLICY, "sequence_length": 4, "burn_in": 1, "actor_units": 8, "critic_units": 8, "lstm_hidden_size": 8,
    },
    "slac": {
        **_OFF_POLICY, "sequence_length": 3, "actor_burn_in": 3, "pretrain_updates": 6, "divergence_warmup": 4,
        "z1_dim": 4, "z2_dim": 4, "model_arch": [8], "net_arch": [8],
    },
}  # fmt: skip
DEMONSTRATION_LEARNERS = ("dqfd", "r2d3", "bc")


@dataclass(frozen=True)
class Case:
    """One algorithm on one kind of task.

    :param spec: the algorithm
    :param observations: of the environment, see :class:`~rlexp.testing.toy_environments.Walk`
    :param actions: of the environment, ``"discrete"`` or ``"continuous"``
    :param masked: whether the environment masks actions
    :param settings: hyper-parameters as the ``algo`` config has them, so small that :data:`STEPS` steps hold updates
    :param demonstrations: whether it learns from ``demonstrations=``
    :param variant: name of the settings where there are several
    """

    spec: AlgoSpec
    observations: str
    actions: str
    masked: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    demonstrations: bool = False
    variant: str = ""

    def __str__(self) -> str:
        marks = ("-masked" if self.masked else "") + (f"-{self.variant}" if self.variant else "")
        return f"{self.spec.name}-{self.observations}-{self.actions}{marks}"

    @property
    def target(self) -> type[Any]:
        """The class."""
        masked = self.masked and self.spec.masked_target is not None
        found: type[Any] = load(
            self.spec.masked_target if masked and self.spec.masked_target else self.spec.target
        )
        return found

    def environment(self) -> Callable[[], gymnasium.Env[Any, Any]]:
        """Return a function that builds the task."""
        return toy_environments.make(self.observations, self.actions, self.masked)

    def env(self, n_envs: int = 1, subprocesses: bool = False) -> VecEnv:
        """Build the training environments as a run does.

        :param n_envs: environments stepped together
        :param subprocesses: one process each
        """
        environment = self.environment()

        def one() -> gymnasium.Env[Any, Any]:
            return EpisodeReplay(Monitor(environment()))

        if subprocesses:
            return SubprocVecEnv([one] * n_envs, start_method="fork")
        return DummyVecEnv([one] * n_envs)

    def model(self, env: VecEnv | int = 1, seed: int = 0, **settings: Any) -> Any:
        """Build the algorithm as a run does.

        :param env: what to train on; a number: so many environments of :meth:`env`
        :param settings: instead of some of the case's own
        """
        options = {"name": self.spec.name, "policy": "auto", **copy.deepcopy(dict(self.settings)), **settings}
        if self.demonstrations:
            options.setdefault(
                "demonstrations", toy_environments.demonstrate(self.observations, masked=self.masked)
            )
        env = self.env(env) if isinstance(env, int) else env
        return build(self.spec, options, env, seed, "cpu", self.masked)

    def evaluator(self, deterministic: bool, n_envs: int = 2, episodes: int = 3) -> Evaluator:
        """Build an evaluator of the task.

        :param deterministic: whether actions are the most likely ones
        :param n_envs: evaluation environments
        :param episodes: per evaluation
        """
        return Evaluator(self.environment(), episodes, n_envs, 77, deterministic, masked=self.masked)

    def batch(self, n: int) -> Any:
        """Return ``n`` observations in one batch, of different episodes and steps."""
        found, env = [], self.environment()()
        for k in range(n):
            observation, _ = env.reset(seed=k)
            for _ in range(k % 4):
                observation = env.step(1 if self.actions == "discrete" else np.ones(2, np.float32))[0]
            found.append(observation)
        if isinstance(found[0], dict):
            return {key: np.stack([one[key] for one in found]) for key in found[0]}
        return np.stack(found)


def of(
    spec: AlgoSpec, settings: Mapping[str, Any] | None = None, demonstrations: bool | None = None
) -> list[Case]:
    """Return the cases that an algorithm supports, the simplest first.

    :param settings: see :class:`Case`; None: the ones known here, or of the base class
    :param demonstrations: see :class:`Case`; None: whether it is one of ours that does
    """
    chosen = _usual(spec) if settings is None else settings
    from_demonstrations = spec.name in DEMONSTRATION_LEARNERS if demonstrations is None else demonstrations
    kinds = [
        (observation, action)
        for observation in ("vector", "image", "dict")
        for action in ("discrete", "continuous")
        if observation in spec.observations and action in spec.actions
    ]
    cases = [Case(spec, *kind, False, chosen, from_demonstrations) for kind in kinds]
    if spec.masked_target is not None and "discrete" in spec.actions:
        cases.append(Case(spec, cases[0].observations, "discrete", True, chosen, from_demonstrations))
    return cases


def _usual(spec: AlgoSpec) -> dict[str, Any]:
    if spec.name in SETTINGS:
        return SETTINGS[spec.name]
    kind = load(spec.target)
    if issubclass(kind, OnPolicyAlgorithm):
        return {"n_steps": 8, "net_arch": [8]}
    if issubclass(kind, OffPolicyAlgorithm):
        return _REPLAY
    return {}


# --------------------------------------------------------------------------------------------- what a training leaves


class _Rows(KVWriter):
    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        """Take a row, but for the times in it."""
        timed = ("time/fps", "time/time_elapsed", "time/iterations")  # counted since learn was called
        values = {
            key: value.item() if isinstance(value, np.generic) else value for key, value in key_values.items()
        }
        self.rows.append({"step": step, **{key: value for key, value in values.items() if key not in timed}})

    def close(self) -> None:
        """Nothing to close."""


def log_rows(model: Any) -> list[dict[str, Any]]:
    """Let an algorithm log into a list.

    :return: the list, to which every row is appended, its ``step`` included and how long things took left out
    """
    rows: list[dict[str, Any]] = []
    model.set_logger(Logger(folder=None, output_formats=[_Rows(rows)]))
    return rows


def snapshot(model: Any) -> dict[str, Any]:
    """Return a copy of everything that a checkpoint holds, generators and replay included."""
    return copy.deepcopy(checkpoint.capture(model))


def outcome(model: Any) -> dict[str, Any]:
    """Return everything that a training decides: a :func:`snapshot` without the clock's readings."""
    state = snapshot(model)
    state["episodes"] = [
        {key: value for key, value in one.items() if key != "t"} for one in state["episodes"]
    ]
    del state["counters"][
        "_num_timesteps_at_start"
    ]  # where this process began; steps per second are counted from it
    return state


def weights(model: Any) -> dict[str, Any]:
    """Return a copy of the parameters by name."""
    return copy.deepcopy(model.get_parameters())


def generators(model: Any) -> dict[str, Any]:
    """Return the states of all generators that training draws from."""
    return copy.deepcopy(checkpoint.capture(model)["random"])


class ContractError(AssertionError):
    """An algorithm or environment breaks a contract."""


def require(condition: Any, message: str) -> None:
    """Check a condition.

    :param condition: what must hold
    :param message: of the error
    :raises ContractError: when it does not hold
    """
    if not condition:
        raise ContractError(message)


def difference(one: Any, other: Any, path: str = "") -> str | None:
    """Return where two trees of values first differ, bit by bit; None when they do not.

    :param one: dictionaries, lists, arrays, tensors and plain values
    :param other: what it is compared with
    :param path: of both within a larger tree, for the answer
    """
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return f"{path}: {sorted(map(str, one.keys() ^ other.keys()))} in one alone"
        pairs = [(f"{path}.{key}", one[key], other[key]) for key in one]
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        if len(one) != len(other):
            return f"{path}: {len(one)} and {len(other)} entries"
        pairs = [(f"{path}[{k}]", *pair) for k, pair in enumerate(zip(one, other, strict=True))]
    elif isinstance(one, (np.ndarray, th.Tensor, np.generic)):
        first, second = _array(one), _array(other)
        if first.shape != second.shape or first.dtype != second.dtype:
            return f"{path}: {first.shape} {first.dtype} and {second.shape} {second.dtype}"
        floating = np.issubdtype(first.dtype, np.floating)
        return None if np.array_equal(first, second, equal_nan=floating) else f"{path}: other values"
    else:
        same = one == other or (one != one and other != other)
        return None if same else f"{path}: {one!r} and {other!r}"
    return next((found for pair in pairs if (found := difference(pair[1], pair[2], pair[0]))), None)


def _array(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(value.detach().cpu() if isinstance(value, th.Tensor) else value)


def same(one: Any, other: Any, what: str) -> None:
    """Require that two trees of values are equal, bit by bit.

    :param one: see :func:`difference`
    :param other: see :func:`difference`
    :param what: they are, for the message
    :raises ContractError: naming the first difference
    """
    found = difference(one, other)
    require(found is None, f"{what} differ at {found}")
