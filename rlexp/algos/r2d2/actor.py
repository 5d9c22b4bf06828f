"""Acting with a recurrent policy, and cutting what happens into sequences; knows neither learner nor replay."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlexp.algos.r2d2.policies import RecurrentPolicy
from rlexp.buffers.sequence_builder import SequenceBuilder, SequenceLayout, Sequences

Array = npt.NDArray[Any]
Observations = Array | dict[str, Array]


def per_actor_epsilons(
    n: int, base: float, exponent: float, total: int | None = None, first: int = 0
) -> Array:
    """``ε_i = base^(1 + exponent i / (N - 1))``: a constant exploration rate per actor (Horgan et al. 2018).

    :param n: number of actors in this process
    :param base: ε of the actor that explores most, 0.4 in the paper
    :param exponent: α, 7 in the paper
    :param total: N, actors of all processes; None: n
    :param first: index of this process's first actor
    """
    positions = (first + np.arange(n)) / max((total or n) - 1, 1)
    return np.asarray(base ** (1 + exponent * positions))


class Actor:
    """Steps environments with a policy and cuts the trajectories into sequences.

    :param policy: its network is read only
    :param n_envs: environments stepped together
    :param layout: how episodes are cut
    """

    def __init__(self, policy: RecurrentPolicy, n_envs: int, layout: SequenceLayout) -> None:
        self.policy = policy
        self.n_envs = n_envs
        space = policy.observation_space
        self._none = int(policy.action_space.n)
        self._builder = SequenceBuilder(n_envs, layout, space, self._none, policy.state_size)
        self._states = np.zeros((n_envs, policy.state_size), np.float32)
        self._last_actions = np.full(n_envs, self._none)
        self._last_rewards = np.zeros(n_envs, np.float32)
        self._after = self._states
        self._actions = self._last_actions

    def begin(self, observations: Observations) -> None:
        """Begin an episode in every environment, whether or not the previous one has ended.

        :param observations: the first ones, ``(n_envs, ...)``
        """
        for env in range(self.n_envs):
            self._begin(env, observations)

    def _begin(self, env: int, observations: Observations) -> None:
        self._builder.begin(env, observations)
        self._states[env] = 0.0
        self._last_actions[env] = self._none
        self._last_rewards[env] = 0.0

    def act(self, observations: Observations, epsilons: Array | float) -> Array:
        """Choose actions; :meth:`observe` stores them.

        :param observations: ``(n_envs, ...)``
        :param epsilons: exploration rates, ``(n_envs,)`` or a number
        :return: ``(n_envs,)``
        """
        self.policy.set_training_mode(False)
        tensor, _ = self.policy.obs_to_tensor(observations)
        values, self._after = self.policy.values(tensor, self._last_actions, self._last_rewards, self._states)
        actions = values.argmax(-1).cpu().numpy()
        explores = np.random.random_sample(self.n_envs) < epsilons
        for env in np.flatnonzero(explores):
            actions[env] = np.random.randint(self._none)
        self._actions = actions
        return actions

    def observe(
        self, rewards: Array, dones: Array, infos: list[dict[str, Any]], new_observations: Observations
    ) -> Sequences | None:
        """Store the outcome of the actions.

        :param rewards: ``(n_envs,)``
        :param dones: ``(n_envs,)``
        :param infos: Stable-Baselines3's, with ``terminal_observation`` and ``TimeLimit.truncated``
        :param new_observations: ``(n_envs, ...)``; of an environment that is done, its next episode's first
        :return: complete sequences; None: there are none
        """
        dones = np.asarray(dones, bool)
        terminated = dones.copy()
        ended = np.flatnonzero(dones).tolist()
        for env in ended:
            terminated[env] = not infos[env].get("TimeLimit.truncated", False)
        last = _with_finals(new_observations, {env: infos[env]["terminal_observation"] for env in ended})
        found = self._builder.step(self._states, self._actions, rewards, last, dones, terminated)
        self._states = self._after.copy()
        self._last_actions = self._actions.copy()
        self._last_rewards = np.asarray(rewards, np.float32).copy()
        for env in ended:
            self._begin(env, new_observations)
        return found

    def state(self) -> dict[str, Any]:
        """Return the state of acting: recurrent states and unfinished sequences."""
        return {
            "builder": self._builder.state(),
            "states": self._states,
            "last_actions": self._last_actions,
            "last_rewards": self._last_rewards,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state` returned."""
        self._builder.load_state(state["builder"])
        self._states = state["states"].copy()
        self._last_actions, self._last_rewards = state["last_actions"].copy(), state["last_rewards"].copy()


def _with_finals(observations: Observations, finals: dict[int, Any]) -> Observations:
    """Return observations with those of some environments replaced; a copy if there are any."""
    if not finals:
        return observations
    if isinstance(observations, dict):
        parts = {key: part.copy() for key, part in observations.items()}
        for env, final in finals.items():
            for key, part in parts.items():
                part[env] = final[key]
        return parts
    replaced = observations.copy()
    for env, final in finals.items():
        replaced[env] = final
    return replaced
