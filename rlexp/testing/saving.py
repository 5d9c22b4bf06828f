"""Contracts of what is saved: models and policies come back and act as they did."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rlexp.demonstrations.lockstep import isolated_random_state
from rlexp.testing import toy_environments
from rlexp.testing.cases import STEPS, Case, require, same, weights
from rlexp.testing.training import trained


@contextmanager
def _file(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / name


def actions(case: Case, model: Any, deterministic: bool, n: int = 4, steps: int = 4) -> list[Any]:
    """Return what a model or policy does in some steps, with its recurrent state; generators have seed 5.

    :param case: provides observations and masks
    :param model: an algorithm or a policy
    :param deterministic: whether actions are the most likely ones
    :param n: observations per step
    :param steps: number of steps
    """
    extra: dict[str, Any] = {"action_masks": np.tile([False, True, False], (n, 1))} if case.masked else {}
    state: Any = None
    found = []
    with isolated_random_state(5):
        for step in range(steps):
            chosen, state = model.predict(
                _rows(case.batch(n + step), step),
                state=state,
                episode_start=np.full(n, step == 0),
                deterministic=deterministic,
                **extra,
            )
            found.append(chosen)
    return found


def _rows(batch: Any, first: int) -> Any:
    return {key: part[first:] for key, part in batch.items()} if isinstance(batch, dict) else batch[first:]


def comes_back_from_a_file(case: Case) -> None:
    """``load`` without an environment gives a model with the same parameters, actions and evaluations.

    :raises ContractError: naming what differs
    """
    model = trained(case).model
    with _file("model.zip") as path:
        model.save(path)
        loaded = case.target.load(path, device="cpu")
    same(weights(model), weights(loaded), "parameters before and after a file")
    for name in case.settings:
        if isinstance(value := getattr(model, name, None), (bool, int, float, str)):
            require(
                getattr(loaded, name) == value,
                f"{name} was {value} and is {getattr(loaded, name)} after a file",
            )
    for deterministic in (True, False):
        how = "greedy" if deterministic else "sampled"
        before, after = (actions(case, one, deterministic) for one in (model, loaded))
        same(before, after, f"{how} actions before and after a file")
        evaluator = case.evaluator(deterministic)
        rows = [{**evaluator.evaluate(one), "wall_s": 0.0} for one in (model, loaded)]
        same(rows[0], rows[1], f"{how} evaluations before and after a file")


def learns_on_from_a_file(case: Case) -> None:
    """``load`` with an environment gives a model that learns on; demonstrations are handed over again where needed.

    :raises ContractError: when it does not
    """
    with _file("model.zip") as path:
        trained(case).model.save(path)
        again: dict[str, Any] = (
            {"demonstrations": toy_environments.demonstrate(case.observations, masked=case.masked)}
            if case.demonstrations
            else {}
        )
        loaded = case.target.load(path, env=case.env(), device="cpu", **again)
    steps = loaded.num_timesteps
    loaded.learn(STEPS // 2, reset_num_timesteps=False)
    require(loaded.num_timesteps >= steps + STEPS // 2, "a loaded model does not learn on")
    require(str(loaded.device) == "cpu", f"device='cpu' was given, the model is on {loaded.device}")


def hands_over_its_parameters(case: Case) -> None:
    """``set_parameters`` gives another model the parameters of ``get_parameters``, and with them its actions.

    :raises ContractError: naming what differs
    """
    model, other = trained(case).model, case.model(seed=1)
    other.set_parameters(weights(model), exact_match=True)
    same(weights(model), weights(other), "parameters handed over")
    same(
        actions(case, model, True),
        actions(case, other, True),
        "greedy actions of a model with the same parameters",
    )


def policy_comes_back_from_a_file(case: Case) -> None:
    """``policy.save`` and ``policy.load`` give a policy that acts as the model does when it does not explore.

    :raises ContractError: naming what differs
    """
    policy = trained(case).model.policy
    with _file("policy.pt") as path:
        policy.save(str(path))
        loaded = type(policy).load(str(path), device="cpu")
    same(
        dict(policy.state_dict()), dict(loaded.state_dict()), "a policy's parameters before and after a file"
    )
    same(
        actions(case, policy, True), actions(case, loaded, True), "a policy's actions before and after a file"
    )
