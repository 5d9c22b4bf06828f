"""Recording whole episodes of somebody who can: of a task's own controller, or of any trained algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rlexp.buffers.demonstrations import Episode
from rlexp.errors import UsageError
from rlexp.evaluation import isolated_random_state, stack

Choose = Callable[
    [list[gymnasium.Env[Any, Any]], list[int], Any, np.ndarray[Any, Any], np.ndarray[Any, Any]], list[Any]
]
"""``choose(envs, playing, observations, starts, rewards) -> actions``: what to do in every copy of the task.

``playing`` has the numbers of the copies whose episode still goes on; what is chosen for others does not count.
``observations`` are stacked, ``starts`` ``(n_envs,)`` says where an episode has just begun, ``rewards`` ``(n_envs,)``
are those that came with the observations.
"""

_SEEDS_BEGIN = 2**62


def episode_seeds(seed: int, episodes: int) -> list[int]:
    """Return the seeds of recorded episodes, which no training and no evaluation ever uses: theirs are below 2³³.

    More episodes begin with the same ones.
    """
    drawn = np.random.SeedSequence(seed).generate_state(episodes, np.uint64)
    return [_SEEDS_BEGIN + int(number) % _SEEDS_BEGIN for number in drawn]


def by_controller(name: str) -> Choose:
    """Let the task's own controller choose."""

    def choose(
        envs: list[gymnasium.Env[Any, Any]],
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


def by_model(model: Any, deterministic: bool, masked: bool) -> Choose:
    """Let an algorithm choose.

    :param model: anything with Stable-Baselines3's ``predict``
    :param deterministic: its best action; else a sampled one
    :param masked: whether the task masks actions and the policy reads the masks
    """
    state: Any = None

    def choose(
        envs: list[gymnasium.Env[Any, Any]],
        playing: list[int],
        observations: Any,
        starts: np.ndarray[Any, Any],
        rewards: np.ndarray[Any, Any],
    ) -> list[Any]:
        nonlocal state
        more: dict[str, Any] = {"rewards": rewards} if getattr(model, "reads_rewards", False) else {}
        if masked:
            rows = [np.asarray(env.get_wrapper_attr("action_masks")()) for env in envs]
            active = [k in playing for k in range(len(envs))]
            more["action_masks"] = np.stack(
                [row if on else np.ones_like(row) for row, on in zip(rows, active, strict=True)]
            )
        actions, state = model.predict(
            observations, state=state, episode_start=starts, deterministic=deterministic, **more
        )
        return actions.tolist() if actions.ndim == 1 else list(actions)

    return choose


def record(
    envs: list[gymnasium.Env[Any, Any]],
    choose: Choose,
    seeds: list[int],
    seed: int,
    progress: Callable[[int, int], None],
    model: Any = None,
) -> tuple[list[Episode], list[dict[str, Any]]]:
    """Play one episode for every seed, several side by side.

    :param envs: copies of the task
    :param choose: the expert
    :param seeds: of the episodes
    :param seed: of sampled actions
    :param progress: told episodes and steps done
    :param model: whose own generators are seeded, too, and put back; None: the expert has none
    :return: the episodes in the order of their seeds, and the last ``info`` of each
    :raises UsageError: when what the expert does is not in the task's action space
    """
    with isolated_random_state(seed, model):
        return _play(envs[: len(seeds)], choose, seeds, progress)


def _play(
    envs: list[gymnasium.Env[Any, Any]],
    choose: Choose,
    seeds: list[int],
    progress: Callable[[int, int], None],
) -> tuple[list[Episode], list[dict[str, Any]]]:
    observation_space, action_space = envs[0].observation_space, envs[0].action_space
    playing = list(range(len(envs)))  # the episode that each copy plays, -1 when none is left
    waiting = iter(range(len(envs), len(seeds)))
    seen: list[list[Any]] = [[env.reset(seed=seeds[k])[0]] for k, env in enumerate(envs)]
    done: list[list[Any]] = [[] for _ in envs]
    rewards: list[list[float]] = [[] for _ in envs]
    episodes: dict[int, Episode] = {}
    infos: dict[int, dict[str, Any]] = {}
    starts = np.ones(len(envs), dtype=bool)
    steps = 0
    while len(episodes) < len(seeds):
        active = [k for k, episode in enumerate(playing) if episode >= 0]
        stacked = stack([rows[-1] for rows in seen], observation_space)
        latest = np.array([rows[-1] if rows else 0.0 for rows in rewards])
        actions = choose(envs, active, stacked, starts, latest)
        starts = np.zeros(len(envs), dtype=bool)
        for k in active:
            action = _as_element(actions[k], action_space)
            observation, reward, terminated, truncated, info = envs[k].step(action)
            seen[k].append(observation)
            done[k].append(action)
            rewards[k].append(float(reward))
            steps += 1
            if terminated or truncated:
                number = playing[k]
                episodes[number] = Episode(
                    _stacked(seen[k], observation_space),
                    np.array(done[k], dtype=action_space.dtype),
                    np.array(rewards[k], dtype=np.float32),
                    bool(terminated),
                    bool(truncated),
                )
                infos[number] = info
                progress(len(episodes), steps)
                playing[k] = next(waiting, -1)
                if playing[k] >= 0:
                    observation, _ = envs[k].reset(seed=seeds[playing[k]])
                seen[k], done[k], rewards[k], starts[k] = [observation], [], [], True
    return [episodes[k] for k in range(len(seeds))], [infos[k] for k in range(len(seeds))]


def _as_element(action: Any, space: spaces.Space[Any]) -> Any:
    if isinstance(action, int) and not isinstance(action, bool):
        action = np.int64(action)
    if not space.contains(action):
        raise UsageError(f"expert: it does {action!r}, which is not in the task's action space {space}")
    return action


def _stacked(observations: list[Any], space: spaces.Space[Any]) -> Any:
    batch = stack(observations, space)
    if isinstance(space, spaces.Dict):
        return {key: np.asarray(part, dtype=space[key].dtype) for key, part in batch.items()}
    return np.asarray(batch, dtype=space.dtype)
