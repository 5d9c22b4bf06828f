"""Measuring a policy: many episodes in lockstep, one forward pass for all, nothing of the training disturbed."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch as th
from gymnasium import spaces

from rlexp import stopping
from rlexp.errors import UsageError
from rlexp.weights import load_weights

MakeEnv = Callable[[], gymnasium.Env[Any, Any]]


class Evaluator:
    """Plays the same seeded episodes with whatever policy it is given.

    :param make_env: builds one copy of the task
    :param episodes: episodes per evaluation
    :param n_envs: copies stepped together; episode ``k`` is played by the next free copy
    :param seed: of the episodes and of sampled actions; the same in every evaluation
    :param deterministic: True: most probable action; False: sampled
    :param metrics: keys of an episode's last ``info`` to be averaged
    :param masked: whether the task masks actions and the policy reads the masks
    """

    def __init__(
        self,
        make_env: MakeEnv,
        episodes: int,
        n_envs: int,
        seed: int,
        deterministic: bool,
        metrics: tuple[str, ...] = (),
        masked: bool = False,
    ) -> None:
        self.episodes = episodes
        self.seed = seed
        self.deterministic = deterministic
        self.metrics = metrics
        self.masked = masked
        self._make_env = make_env
        self._n_envs = min(n_envs, episodes)
        self._envs: list[gymnasium.Env[Any, Any]] = []

    def evaluate(self, model: Any) -> dict[str, Any]:
        """Return means and standard deviations over the episodes, in the words of ``evaluations.jsonl``.

        :param model: anything with Stable-Baselines3's ``predict``
        :raises Stopped: after a signal
        """
        started = time.perf_counter()
        if not self._envs:
            self._envs = [self._make_env() for _ in range(self._n_envs)]
        with (
            isolated_random_state(self.seed, model),
            stopping.doing("the evaluation's current step"),
        ):
            episodes = self._play(model)
        row: dict[str, Any] = {"n": len(episodes)}
        row |= _spread("return", [episode["return"] for episode in episodes])
        row |= _spread("length", [episode["length"] for episode in episodes])
        successes = [episode["is_success"] for episode in episodes if "is_success" in episode]
        if successes:
            row["success_rate"] = float(np.mean(successes))
        for metric in self.metrics:
            row |= _spread(metric, [episode[metric] for episode in episodes if metric in episode])
        periods = [episode["periods"] for episode in episodes if episode["periods"]]
        if periods:
            row["periods"] = _mean_periods(periods)
        row["wall_s"] = round(time.perf_counter() - started, 3)
        return row

    def close(self) -> None:
        """Close the copies of the task."""
        for env in self._envs:
            env.close()
        self._envs = []

    def _play(self, model: Any) -> list[dict[str, Any]]:
        envs = self._envs
        n = len(envs)
        seeds = np.random.SeedSequence(self.seed).generate_state(self.episodes).tolist()
        waiting = iter(range(n, self.episodes))
        playing = list(range(n))  # the episode that each copy plays, -1 when none is left
        observations = [env.reset(seed=seeds[k])[0] for k, env in enumerate(envs)]
        returns, lengths = [0.0] * n, [0] * n
        periods: list[list[dict[str, float]]] = [[] for _ in range(n)]
        starts = np.ones(n, dtype=bool)
        rewards = np.zeros(n)
        # The previous reward may be an input, as in R2D2.
        reads_rewards = getattr(model, "reads_rewards", False)
        state: Any = None
        results: list[dict[str, Any]] = [{} for _ in range(self.episodes)]
        left = self.episodes
        while left:
            stopping.raise_if_requested()
            extra: dict[str, Any] = {"action_masks": self._masks(playing)} if self.masked else {}
            if reads_rewards:
                extra["rewards"] = rewards
            actions, state = model.predict(
                stack(observations, envs[0].observation_space),
                state=state,
                episode_start=starts,
                deterministic=self.deterministic,
                **extra,
            )
            starts = np.zeros(n, dtype=bool)
            moves = actions.tolist() if actions.ndim == 1 else list(actions)
            for k, episode in enumerate(playing):
                if episode < 0:
                    continue
                observation, reward, terminated, truncated, info = envs[k].step(moves[k])
                rewards[k] = float(reward)
                returns[k] += float(reward)
                lengths[k] += 1
                if "period" in info:
                    periods[k].append(info["period"])
                if terminated or truncated:
                    results[episode] = {**self._result(returns[k], lengths[k], info), "periods": periods[k]}
                    periods[k] = []
                    left -= 1
                    returns[k], lengths[k], starts[k] = 0.0, 0, True
                    playing[k] = next(waiting, -1)
                    if playing[k] >= 0:
                        observation = envs[k].reset(seed=seeds[playing[k]])[0]
                observations[k] = observation
        return results

    def _masks(self, playing: list[int]) -> np.ndarray[Any, Any]:
        masks = [env.get_wrapper_attr("action_masks")() for env in self._envs]
        return np.stack(
            [mask if k >= 0 else np.ones_like(mask) for mask, k in zip(masks, playing, strict=True)]
        )

    def _result(self, total: float, length: int, info: dict[str, Any]) -> dict[str, float]:
        found = {key: float(info[key]) for key in ("is_success", *self.metrics) if key in info}
        return {"return": total, "length": length, **found}


def stack(observations: list[Any], space: spaces.Space[Any]) -> Any:
    """Return one batch: an array ``(n_envs, ...)``, or a dictionary of such arrays."""
    if isinstance(space, spaces.Dict):
        return {key: np.stack([observation[key] for observation in observations]) for key in space.spaces}
    return np.stack(observations)


def _spread(name: str, values: list[float]) -> dict[str, float]:
    return {f"{name}_mean": float(np.mean(values)), f"{name}_std": float(np.std(values))} if values else {}


def _mean_periods(episodes: list[list[dict[str, float]]]) -> list[dict[str, float]]:
    """Return the mean over episodes of the k-th part of each, as far as all of them go."""
    return [
        {key: float(np.mean([period[key] for period in parts])) for key in parts[0]}
        for parts in zip(*episodes, strict=False)
    ]


@contextmanager
def isolated_random_state(seed: int, model: Any = None) -> Iterator[None]:
    """Seed every global generator and the model's own ones for a while, and put each back as it was found.

    :param seed: of all of them, at least 0
    :param model: whose generators those of its attributes are, and those of its policy's; None: global ones only
    """
    python_state, numpy_state = random.getstate(), np.random.get_state()
    bit_generators = _bit_generators(model)
    own_states = [generator.state for generator in bit_generators]
    with th.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed % 2**32)
        th.manual_seed(seed)
        for generator in bit_generators:
            generator.state = type(generator)(seed).state
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)
            for generator, state in zip(bit_generators, own_states, strict=True):
                generator.state = state


def _bit_generators(model: Any) -> list[Any]:
    """Return NumPy's bit generators that a model or its policy draws from; a space samples with one of its own."""
    found: dict[int, Any] = {}
    for owner in (model, getattr(model, "policy", None)):
        for value in getattr(owner, "__dict__", {}).values():
            generator = value.np_random if isinstance(value, spaces.Space) else value
            if isinstance(generator, np.random.Generator):
                found[id(generator.bit_generator)] = generator.bit_generator
    return list(found.values())


def load_policy(model: Any, archive: Path, device: str) -> None:
    """Let a model act as the one that was saved.

    Stable-Baselines3's ``set_parameters`` restores weights alone. A class names the attributes that decide how it acts
    besides them in ``evaluation_attributes``; ``exploration_rate`` always counts. They are read from the archive's
    JSON, in which plain numbers stand as they are; nothing is unpickled.

    :param model: built with the configuration of the saved one
    :param archive: ``model.zip``
    :param device: where the weights go
    :raises UsageError: when the archive is damaged or of another model, or an attribute is missing from it or is not a
        finite number
    """
    saved = load_weights(model, archive, device)
    for name in {"exploration_rate", *getattr(model, "evaluation_attributes", ())}:
        if not hasattr(model, name):
            continue
        if not isinstance(saved.get(name), (int, float)) or not math.isfinite(saved[name]):
            raise UsageError(f"{archive}: damaged, {name} is missing; force=true trains the run again")
        setattr(model, name, saved[name])
