"""Contracts of training: nothing disturbs it, the seed decides it, and it resumes exactly from wherever it stopped."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from rlexp.algos.common.resumable_logging import ResumableLogging
from rlexp.runs import checkpoint
from rlexp.runs.evaluation import Evaluator
from rlexp.testing.cases import (
    STEPS,
    Case,
    ContractError,
    generators,
    log_rows,
    outcome,
    require,
    same,
    snapshot,
    weights,
)


def _log_interval(case: Case) -> int:
    """Return how often to log; where Stable-Baselines3 counts that from ``learn`` on, only 1 can resume exactly."""
    counts_from_learn = issubclass(case.target, OnPolicyAlgorithm) and not issubclass(
        case.target, ResumableLogging
    )
    return 1 if counts_from_learn else 2


class _AtBoundaries(BaseCallback):
    """Calls back at every rollout boundary with its number, those of pre-training included."""

    def __init__(self, call: Callable[[int, Any], None]) -> None:
        super().__init__()
        self._call, self.count = call, 0

    def _on_rollout_start(self) -> None:
        self._call(self.count, self.model)
        self.count += 1

    def _on_step(self) -> bool:
        return True


class _Every(BaseCallback):
    def __init__(self, steps: int, evaluators: list[Evaluator]) -> None:
        super().__init__()
        self._steps, self._evaluators, self._done = steps, evaluators, 0

    def _on_step(self) -> bool:
        if self.num_timesteps // self._steps > self._done:
            self._done = self.num_timesteps // self._steps
            for evaluator in self._evaluators:
                evaluator.evaluate(self.model)
        return True


class _Killed(BaseException):
    """Simulates SIGKILL: no handler catches it."""


class Trained:
    """A training and what it left at every rollout boundary.

    :param case: what to train
    :param n_envs: on how many environments
    """

    def __init__(self, case: Case, n_envs: int) -> None:
        self.model = case.model(n_envs)
        self.rows = log_rows(self.model)
        self.boundaries: list[tuple[dict[str, Any], int]] = []  # the state, and how many rows had been logged

        def note(number: int, model: Any) -> None:
            self.boundaries.append((snapshot(model), len(self.rows)))

        self.model.learn(STEPS, callback=_AtBoundaries(note), log_interval=_log_interval(case))
        self.end = outcome(self.model)


@lru_cache(maxsize=2)
def trained(case: Case, n_envs: int = 1) -> Trained:
    """Return a recorded, undisturbed training run of the case with seed 0.

    :param case: what is trained
    :param n_envs: environments stepped together
    """
    return Trained(case, n_envs)


def is_blind_to_evaluation(case: Case) -> None:
    """Training is the same, bit by bit, with and without evaluation, greedy or sampled, on one environment or three.

    :raises ContractError: naming which evaluation changed what
    """
    plain = trained(case)
    everything = [(deterministic, n_envs) for deterministic in (True, False) for n_envs in (1, 3)]
    for chosen in (everything, *([one] for one in everything)):
        evaluators = [case.evaluator(deterministic, n_envs) for deterministic, n_envs in chosen]
        model = case.model()
        rows = log_rows(model)
        model.learn(STEPS, callback=_Every(30, evaluators), log_interval=_log_interval(case))
        try:
            same(plain.end, outcome(model), "trainings without and with evaluation")
            same(plain.rows, rows, "log rows without and with evaluation")
        except AssertionError:
            if chosen is everything:
                continue  # find out which of them it was
            raise
        if chosen is everything:
            return
    raise AssertionError("the evaluations together change training, though none of them does alone")


def evaluates_alike(case: Case) -> None:
    """The same weights always get the same evaluation, which draws from no generator of training.

    :raises ContractError: naming what differs
    """
    model = trained(case).model
    for deterministic in (True, False):
        before = generators(model)
        rows = []
        for _ in range(2):
            evaluator = case.evaluator(deterministic)
            rows.append({**evaluator.evaluate(model), "wall_s": 0.0})
            evaluator.close()
        how = "greedy" if deterministic else "sampled"
        same(before, generators(model), f"generators before and after a {how} evaluation")
        same(rows[0], rows[1], f"two {how} evaluations of the same weights")


def is_decided_by_its_seed(case: Case) -> None:
    """The same seed gives the same training, another seed another one.

    :raises ContractError: when it does not
    """
    again = case.model()
    again.learn(STEPS, log_interval=_log_interval(case))
    same(trained(case).end, outcome(again), "two trainings with the same seed")
    other = case.model(seed=1)
    other.learn(STEPS // 4)
    differ = any(
        not np.array_equal(one, two)
        for one, two in zip(
            _flat(weights(trained(case).model)["policy"]), _flat(weights(other)["policy"]), strict=True
        )
    )
    require(differ, "trainings with seeds 0 and 1 are the same")


def resumes_exactly(case: Case, n_envs: int = 1, boundaries: int = 2) -> None:
    """A training that a new process takes up at a rollout boundary ends, and logs, as if it had not been interrupted.

    :param boundaries: how many to try, evenly spread, the last one included
    :raises ContractError: naming boundary and difference
    """
    plain = trained(case, n_envs)
    chosen = np.linspace(0, len(plain.boundaries) - 1, boundaries + 1)[1:].round().astype(int)
    for number in sorted(set(chosen.tolist())):
        state, n_rows = plain.boundaries[number]
        resumed, rows = _resume(case, n_envs, state)
        step = state["counters"]["num_timesteps"]
        what = f"the training and the one resumed at rollout boundary {number} (step {step})"
        same(plain.end, outcome(resumed), what)
        same(plain.rows[n_rows:], rows, f"log rows of {what}")


def resumes_with_many_environments(case: Case) -> None:
    """The same of three environments; see :func:`resumes_exactly`."""
    resumes_exactly(case, n_envs=3)


def resumes_after_a_kill(case: Case) -> None:
    """After a kill in the middle of a rollout, training resumes exactly from the newest checkpoint on disk.

    :raises ContractError: naming the difference
    """
    with tempfile.TemporaryDirectory() as folder:
        newest = _train_until_killed(case, Path(folder) / "checkpoints")[0]
        resumed, _ = _resume(case, 1, checkpoint.load(newest))
    same(trained(case).end, outcome(resumed), "the training and the one resumed after a kill")


def resumes_past_damage(case: Case) -> None:
    """A damaged checkpoint is not read, and training resumes exactly from the one before.

    :raises ContractError: naming the difference, or when the damage was not noticed
    """
    with tempfile.TemporaryDirectory() as folder:
        newest, before = _train_until_killed(case, Path(folder) / "checkpoints")
        largest = max(newest.iterdir(), key=lambda path: path.stat().st_size)
        content = bytearray(largest.read_bytes())
        content[len(content) // 2] ^= 0xFF
        largest.write_bytes(bytes(content))
        try:
            checkpoint.load(newest)
        except checkpoint.CheckpointError:
            pass
        else:
            raise ContractError("a damaged checkpoint is read as if it were intact")
        resumed, _ = _resume(case, 1, checkpoint.load(before))
    same(trained(case).end, outcome(resumed), "the training and the one resumed past a damaged checkpoint")


def _train_until_killed(case: Case, root: Path) -> list[Path]:
    """Train with checkpoints at some boundaries, killed in the middle of a late rollout; return the newest two."""
    late = len(trained(case).boundaries) * 2 // 3

    def save(number: int, model: Any) -> None:
        kill.armed = number >= late
        if late - 3 <= number < late:
            checkpoint.save(root, checkpoint.capture(model), number, 2)

    class Kill(BaseCallback):
        armed = False

        def _on_step(self) -> bool:
            if self.armed:
                raise _Killed
            return True

    kill = Kill()
    model = case.model()
    log_rows(model)
    try:
        model.learn(STEPS, callback=[_AtBoundaries(save), kill], log_interval=_log_interval(case))
    except _Killed:
        found = checkpoint.available(root)
        require(len(found) == 2, f"{len(found)} checkpoints were written before the kill, not 2")
        return found
    raise ContractError("the training ended before it was killed")


def _resume(case: Case, n_envs: int, state: dict[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
    """Train on from a state, in a fresh model after generators that stand anywhere."""
    random.seed(99)
    np.random.seed(99)
    th.manual_seed(99)
    model = case.model(n_envs)
    rows = log_rows(model)
    checkpoint.restore(model, state)
    checkpoint.restore_pending_metrics(model, state)
    left = STEPS - model.num_timesteps
    model.learn(left, reset_num_timesteps=False, log_interval=_log_interval(case))
    return model, rows


def _flat(tree: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(value) for value in tree.values()]
