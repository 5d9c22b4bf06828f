"""Measuring a policy: many episodes in lockstep, one forward pass for all, nothing of the training disturbed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from rlexp.demonstrations.lockstep import by_model, isolated_random_state, play
from rlexp.errors import UsageError
from rlexp.runs.weights import load_weights
from rlexp.system import stopping

MakeEnv = Callable[[], gymnasium.Env[Any, Any]]
Summarize = Callable[[Sequence[Sequence[Mapping[str, Any]]]], dict[str, Any]]


class Evaluator:
    """Plays the same seeded episodes with whatever policy it is given.

    :param make_env: builds one environment
    :param episodes: episodes per evaluation
    :param n_envs: environments stepped together; episode ``k`` is played by the next free one
    :param seed: of the episodes and of sampled actions; the same in every evaluation
    :param deterministic: True: most probable action; False: sampled
    :param metrics: keys of an episode's last ``info`` to be averaged
    :param masked: whether the environment masks actions and the policy reads the masks
    :param max_episode_steps: an episode that has not ended by then never will: an error, not a result
    :param summarize: gives further entries of a row from the infos of every episode, empty ones left out
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
        max_episode_steps: int = 100_000,
        summarize: Summarize | None = None,
    ) -> None:
        self.episodes = episodes
        self.seed = seed
        self.deterministic = deterministic
        self.metrics = metrics
        self.masked = masked
        self.max_episode_steps = max_episode_steps
        self._summarize = summarize
        self._make_env = make_env
        self._n_envs = min(n_envs, episodes)
        self._envs: list[gymnasium.Env[Any, Any]] = []

    def evaluate(self, model: Any) -> dict[str, Any]:
        """Return means and standard deviations over the episodes, under the keys of ``evaluations.jsonl``.

        :param model: anything with Stable-Baselines3's ``predict``
        :raises Stopped: after a signal
        :raises RuntimeError: when an episode does not end
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
        row |= _mean_and_std("return", [episode["return"] for episode in episodes])
        row |= _mean_and_std("length", [episode["length"] for episode in episodes])
        successes = [episode["is_success"] for episode in episodes if "is_success" in episode]
        if successes:
            row["success_rate"] = float(np.mean(successes))
        for metric in self.metrics:
            row |= _mean_and_std(metric, [episode[metric] for episode in episodes if metric in episode])
        if self._summarize is not None:
            row |= self._summarize([episode["infos"] for episode in episodes])
        row["wall_s"] = round(time.perf_counter() - started, 3)
        return row

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            env.close()
        self._envs = []

    def _play(self, model: Any) -> list[dict[str, Any]]:
        seeds = np.random.SeedSequence(self.seed).generate_state(self.episodes).tolist()
        returns, lengths = [0.0] * self.episodes, [0] * self.episodes
        infos: list[list[dict[str, Any]]] = [[] for _ in range(self.episodes)]
        results: list[dict[str, Any]] = [{} for _ in range(self.episodes)]
        choose = by_model(model, self.deterministic, self.masked)
        for step in play(self._envs, choose, seeds):
            stopping.raise_if_requested()
            k = step.episode
            returns[k] += step.reward
            lengths[k] += 1
            if lengths[k] == self.max_episode_steps and not (step.terminated or step.truncated):
                raise RuntimeError(
                    f"evaluation: an episode has not ended after {lengths[k]:,} steps; give the environment a limit, "
                    "e.g. +env.kwargs.max_episode_steps=1000"
                )
            if self._summarize is not None and step.info:
                infos[k].append(step.info)
            if step.terminated or step.truncated:
                results[k] = {**self._result(returns[k], lengths[k], step.info), "infos": infos[k]}
        return results

    def _result(self, total: float, length: int, info: dict[str, Any]) -> dict[str, float]:
        found = {key: float(info[key]) for key in ("is_success", *self.metrics) if key in info}
        return {"return": total, "length": length, **found}


def _mean_and_std(name: str, values: list[float]) -> dict[str, float]:
    return {f"{name}_mean": float(np.mean(values)), f"{name}_std": float(np.std(values))} if values else {}


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
