"""Small environments for learners with a memory, and demonstrations of them."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rlexp.demonstrations.dataset import Demonstrations, Episode


class Recall(gymnasium.Env[Any, Any]):
    """One of two signs is shown first, then only blanks; three steps later the right action is the sign's.

    Every other right action is 0, so that nothing but a memory tells what to do at the end. Wrong at the end: the time
    is up, which is a time limit and no termination.
    """

    observation_space = spaces.Box(0, 1, (3,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.sign, self.time = int(self.np_random.integers(2)), 0
        return np.eye(3, dtype=np.float32)[self.sign], {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.time += 1
        last = self.time == 4
        right = int(action) == (self.sign if last else 0)
        reward = (1.0 if right else -1.0) if last else 0.0
        blank = np.eye(3, dtype=np.float32)[2]
        return blank, reward, last and right, last and not right, {"is_success": last and right}

    @property
    def expert_action(self) -> int:
        return self.sign if self.time == 3 else 0


class GridView(gymnasium.Env[Any, Any]):
    """MiniGrid's observations, in which the action to take is written."""

    observation_space = spaces.Dict(
        {
            "image": spaces.Box(0, np.broadcast_to(np.uint8((10, 5, 3)), (7, 7, 3)), dtype=np.uint8),
            "direction": spaces.Box(0, 3, (1,), np.uint8),
        }
    )
    action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return self._observe(), {}

    def _observe(self) -> dict[str, Any]:
        image = np.zeros((7, 7, 3), np.uint8)
        self.wanted = int(self.np_random.integers(3))
        image[3, 5] = 4 + self.wanted, 1, 0
        return {"image": image, "direction": np.array([self.time % 4], np.uint8)}

    def step(self, action: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.time += 1
        reward = float(int(action) == self.wanted)
        return self._observe(), reward, False, self.time == 6, {}

    @property
    def expert_action(self) -> int:
        return self.wanted


class Screens(GridView):
    """Images with channels last, which Stable-Baselines3 transposes."""

    observation_space = spaces.Box(0, 255, (36, 36, 3), np.uint8)  # type: ignore[assignment]

    def _observe(self) -> Any:
        self.wanted = int(self.np_random.integers(3))
        image = np.zeros((36, 36, 3), np.uint8)
        image[..., self.wanted] = 255
        return image


def demonstrate(environment: type[Any], episodes: int = 20, seed: int = 0) -> Demonstrations:
    """Let the expert play."""
    env = environment()
    found = []
    for number in range(episodes):
        seen, actions, rewards = [env.reset(seed=seed + number)[0]], [], []
        ended = limit = False
        while not (ended or limit):
            actions.append(env.expert_action)
            observation, reward, ended, limit, _ = env.step(actions[-1])
            seen.append(observation)
            rewards.append(reward)
        observations: Any = (
            {key: np.stack([one[key] for one in seen]) for key in seen[0]}
            if isinstance(seen[0], dict)
            else np.stack(seen)
        )
        found.append(Episode(observations, np.array(actions), np.array(rewards, np.float32), ended, limit))
    return Demonstrations(tuple(found), env.observation_space, env.action_space, {"expert": "test"})
