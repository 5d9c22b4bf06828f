"""Contracts with Stable-Baselines3's callbacks: they stop, save, evaluate and log as with its own algorithms."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import (
    BaseCallback,
    CheckpointCallback,
    EvalCallback,
    LogEveryNTimesteps,
    StopTrainingOnMaxEpisodes,
)
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from rlexp.testing.cases import STEPS, Case, log_rows, require

_CALLS = 3  # of a callback between two of its actions; an algorithm may call it once for many steps


class _StopAt(BaseCallback):
    def __init__(self, calls: int) -> None:
        super().__init__()
        self._calls = calls

    def _on_step(self) -> bool:
        return self.n_calls < self._calls


def stops_when_a_callback_says_so(case: Case) -> None:
    """A callback can stop training at the first step or within a rollout, and ``learn`` works afterwards.

    :raises ContractError: when training continues, or does not start again
    """
    for calls, n_envs in ((1, 3), (19, 1)):
        model = case.model(n_envs)
        log_rows(model)
        stop = _StopAt(calls)
        model.learn(10 * STEPS * n_envs, callback=stop)
        require(
            stop.n_calls == calls, f"a callback stopped at call {calls} and was called {stop.n_calls} times"
        )
        model.learn(STEPS)
        require(model.num_timesteps >= STEPS, "training does not start again after a callback stopped it")
        model.learn(10 * STEPS * n_envs, callback=_StopAt(calls), reset_num_timesteps=False)
        model.learn(STEPS // 2, reset_num_timesteps=False)


def stops_after_episodes(case: Case) -> None:
    """``StopTrainingOnMaxEpisodes`` stops training, and ``learn`` works again afterwards.

    :raises ContractError: when training continues, or does not start again
    """
    model = case.model()
    log_rows(model)
    stop = StopTrainingOnMaxEpisodes(max_episodes=3)
    model.learn(10_000, callback=stop)
    require(stop.n_episodes == 3, f"StopTrainingOnMaxEpisodes(3) counted {stop.n_episodes} episodes")
    require(model.num_timesteps < 10_000, "StopTrainingOnMaxEpisodes did not stop training")
    model.learn(STEPS)


def keeps_its_budget(case: Case) -> None:
    """``learn(n)`` ends at ``n`` or with the rollout that passes it; it continues, or begins again, as asked.

    :raises ContractError: naming the counts
    """
    model = case.model(3)
    log_rows(model)
    slack = 3 * STEPS

    def near(expected: int, what: str) -> int:
        found = int(model.num_timesteps)
        require(expected <= found < expected + slack, f"{what} ends at step {found}, not at {expected}")
        return found

    first = near(STEPS, f"learn({STEPS})") if model.learn(STEPS) is model else -1
    require(first > 0, "learn does not return the algorithm")
    model.learn(STEPS, reset_num_timesteps=False)
    near(first + STEPS, "learn again with reset_num_timesteps=False")
    model.learn(STEPS)
    near(STEPS, "learn again")


def saves_for_checkpoint_callback(case: Case) -> None:
    """``CheckpointCallback`` saves the model, and an off-policy algorithm's replay buffer, while training continues.

    :raises ContractError: when a file is missing
    """
    model = case.model()
    log_rows(model)
    with tempfile.TemporaryDirectory() as folder:
        save = CheckpointCallback(
            _CALLS, folder, name_prefix="x", save_replay_buffer=True, save_vecnormalize=True
        )
        model.learn(STEPS, callback=save)
        names = sorted(path.name for path in Path(folder).iterdir())
    require(any(name.endswith(".zip") for name in names), f"CheckpointCallback saved no model: {names}")
    if isinstance(model, OffPolicyAlgorithm):
        require(
            any("replay_buffer" in name for name in names),
            f"CheckpointCallback saved no replay buffer: {names}",
        )


def evaluates_in_eval_callback(case: Case) -> None:
    """``EvalCallback`` evaluates and saves the best model; a callback may log at its own steps.

    :raises ContractError: when it did not
    """
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv

    model = case.model()
    rows = log_rows(model)
    with tempfile.TemporaryDirectory() as folder:
        measure = EvalCallback(
            DummyVecEnv([lambda: Monitor(case.environment()())]), n_eval_episodes=2, eval_freq=_CALLS,
            best_model_save_path=folder, verbose=0, warn=False,
        )  # fmt: skip
        model.learn(STEPS, callback=[measure, LogEveryNTimesteps(STEPS // 4)], log_interval=None)
        require((Path(folder) / "best_model.zip").exists(), "EvalCallback saved no best model")
    require(
        any("eval/mean_reward" in row for row in rows),
        "LogEveryNTimesteps wrote no row with eval/mean_reward",
    )


def logs_as_asked(case: Case) -> None:
    """Rows come at every ``log_interval``, hold the mean return of the episodes played, and None switches them off.

    :raises ContractError: naming what is missing
    """
    counts = {}
    for interval in (1, 2, None):
        model = case.model()
        rows = log_rows(model)
        model.learn(STEPS, log_interval=interval)
        counts[interval] = len(rows)
        if interval == 1:
            require(any("time/total_timesteps" in row for row in rows), "no row has time/total_timesteps")
            require(any("rollout/ep_rew_mean" in row for row in rows), "no row has rollout/ep_rew_mean")
    require(
        counts[1] > counts[2] > counts[None] == 0,
        f"rows with log_interval 1, 2 and None: {counts[1]}, {counts[2]} and {counts[None]}",
    )


CONTRACTS: tuple[Any, ...] = (
    stops_when_a_callback_says_so,
    stops_after_episodes,
    keeps_its_budget,
    saves_for_checkpoint_callback,
    evaluates_in_eval_callback,
    logs_as_asked,
)
