"""Collecting complete episodes of an expert: an environment's own controller, or a trained algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rlexp.demonstrations.dataset import Episode
from rlexp.demonstrations.lockstep import Choose, Env, by_model, isolated_random_state, play, stack
from rlexp.errors import UsageError

__all__ = ["by_controller", "by_model", "env_spec", "episode_seeds", "record"]

_SEEDS_BEGIN = 2**62


def episode_seeds(seed: int, episodes: int) -> list[int]:
    """Return the seeds of recorded episodes, which no training and no evaluation ever uses: theirs are below 2³³.

    More episodes begin with the same ones.
    """
    drawn = np.random.SeedSequence(seed).generate_state(episodes, np.uint64)
    return [_SEEDS_BEGIN + int(number) % _SEEDS_BEGIN for number in drawn]


def env_spec(env: Env) -> str | None:
    """Return gymnasium's description of an environment, as JSON, from which ``gymnasium.make`` builds it again.

    :return: None when what it would build has other spaces, because wrappers that it does not know changed them
    """
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper) and not type(inner).__module__.startswith("gymnasium."):
        inner = inner.env
    same = (inner.observation_space, inner.action_space) == (env.observation_space, env.action_space)
    try:
        return str(inner.spec.to_json()) if same and inner.spec is not None else None
    except (TypeError, ValueError):  # an argument that is no JSON value
        return None


def by_controller(name: str) -> Choose:
    """Let the environment's own controller choose."""

    def choose(
        envs: list[Env],
        playing: list[int],
        observations: Any,
        starts: np.ndarray[Any, Any],
        rewards: np.ndarray[Any, Any],
    ) -> list[Any]:
        actions: list[Any] = [None] * len(envs)
        for k in playing:
            actions[k] = envs[k].unwrapped.controller_action(name)  # type: ignore[attr-defined]
        return actions

    return choose


def record(
    envs: list[Env],
    choose: Choose,
    seeds: list[int],
    seed: int,
    progress: Callable[[int, int], None],
    model: Any = None,
) -> tuple[list[Episode], list[dict[str, Any]]]:
    """Play one episode for every seed, several side by side.

    :param envs: the environments
    :param choose: the expert
    :param seeds: of the episodes
    :param seed: of sampled actions
    :param progress: called with the numbers of episodes and steps so far
    :param model: whose own generators are seeded, too, and put back; None: the expert has none
    :return: the episodes in the order of their seeds, and the last ``info`` of each
    :raises UsageError: when what the expert does is not in the environment's action space
    """
    with isolated_random_state(seed, model):
        return _play(envs[: len(seeds)], choose, seeds, progress)


def _play(
    envs: list[Env], choose: Choose, seeds: list[int], progress: Callable[[int, int], None]
) -> tuple[list[Episode], list[dict[str, Any]]]:
    observation_space, action_space = envs[0].observation_space, envs[0].action_space
    n = len(seeds)
    observations: list[list[Any]] = [[] for _ in range(n)]
    actions: list[list[Any]] = [[] for _ in range(n)]
    rewards: list[list[float]] = [[] for _ in range(n)]
    episodes: dict[int, Episode] = {}
    infos: dict[int, dict[str, Any]] = {}

    def choose_elements(envs: list[Env], playing: list[int], *more: Any) -> list[Any]:
        chosen = choose(envs, playing, *more)
        return [_as_element(a, action_space) if k in playing else None for k, a in enumerate(chosen)]

    def begin(k: int, observation: Any) -> None:
        observations[k].append(observation)

    for steps, step in enumerate(play(envs, choose_elements, seeds, begin), start=1):
        k = step.episode
        observations[k].append(step.observation)
        actions[k].append(step.action)
        rewards[k].append(step.reward)
        if step.terminated or step.truncated:
            episodes[k] = Episode(
                _stacked(observations[k], observation_space),
                np.array(actions[k], dtype=action_space.dtype),
                np.array(rewards[k], dtype=np.float32),
                step.terminated,
                step.truncated,
            )
            observations[k] = []
            infos[k] = step.info
            progress(len(episodes), steps)
    return [episodes[k] for k in range(n)], [infos[k] for k in range(n)]


def _as_element(action: Any, space: spaces.Space[Any]) -> Any:
    if isinstance(action, int) and not isinstance(action, bool):
        action = np.int64(action)
    if not space.contains(action):
        raise UsageError(
            f"expert: it does {action!r}, which is not in the environment's action space {space}"
        )
    return action


def _stacked(observations: list[Any], space: spaces.Space[Any]) -> Any:
    batch = stack(observations, space)
    if isinstance(space, spaces.Dict):
        return {key: np.asarray(part, dtype=space[key].dtype) for key, part in batch.items()}
    return np.asarray(batch, dtype=space.dtype)
