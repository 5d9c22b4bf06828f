"""Contracts with environments and observations as Stable-Baselines3 and gymnasium have them."""

from __future__ import annotations

import dataclasses
import inspect
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecNormalize

from rlexp.testing.cases import STEPS, Case, ContractError, log_rows, outcome, require, same, snapshot
from rlexp.testing.training import trained


def predicts_in_shape(case: Case) -> None:
    """One observation gives one action, ``n`` give ``n``, arrays all of them and of the action space.

    :raises ContractError: naming shape or type
    """
    model = trained(case).model
    space = model.action_space
    for deterministic in (True, False):
        for n in (None, 1, 3):
            batch = case.batch(n or 1)
            observation: Any = batch
            if n is None:
                observation = (
                    {key: part[0] for key, part in batch.items()} if isinstance(batch, dict) else batch[0]
                )
            extra: dict[str, Any] = {}
            if case.masked:
                mask = np.array([False, True, False])
                extra["action_masks"] = mask if n is None else np.tile(mask, (n, 1))
            chosen = model.predict(observation, deterministic=deterministic, **extra)[0]
            wanted = space.shape if n is None else (n, *space.shape)
            require(
                isinstance(chosen, np.ndarray),
                f"predict returns a {type(chosen).__name__} for {n or 'one'} observation(s), not an array",
            )
            require(chosen.shape == wanted, f"predict returns shape {chosen.shape}, not {wanted}")
            one = chosen if n is None else chosen[0]
            inside = space.contains(int(one) if isinstance(space, spaces.Discrete) else one)
            require(inside, f"predict returns {one!r}, which is not in {space}")
            require(
                np.issubdtype(chosen.dtype, np.integer) == isinstance(space, spaces.Discrete),
                f"predict returns {chosen.dtype} for {space}",
            )


def hints_at_the_gym_api(case: Case) -> None:
    """``predict`` on what gymnasium's ``reset`` returns says what was mixed up, as Stable-Baselines3 does.

    :raises ContractError: when it does not
    """
    try:
        trained(case).model.predict(case.environment()().reset())
    except ValueError as error:
        require(
            "mixing Gym API" in str(error),
            f"predict((observation, info)) says '{error}', not what was mixed up",
        )
    else:
        raise ContractError("predict accepts (observation, info), which is not an observation")


def trains_in_subprocesses(case: Case) -> None:
    """Training in separate processes is the same, bit by bit, as in one.

    :raises ContractError: naming the difference
    """
    ends = []
    for subprocesses in (False, True):
        env = case.env(2, subprocesses)
        model = case.model(env)
        require(
            model.get_env() is not None and model.get_env().num_envs == 2,
            "get_env does not return the environment",
        )
        log_rows(model)
        model.learn(STEPS)
        ends.append(outcome(model))
        env.close()
    same(ends[0], ends[1], "trainings in one process and in two more")


def normalizes_or_says_no(case: Case) -> None:
    """``VecNormalize`` works, or is rejected in one line where the algorithm declares that it does not.

    :raises ContractError: when neither is so
    """
    env = VecNormalize(case.env(2))
    if "VecNormalize" in case.spec.unsupported:
        rejects(case, lambda: case.model(env), "VecNormalize")
        return
    model = case.model(env)
    log_rows(model)
    model.learn(STEPS)
    require(
        all(bool(th.isfinite(one).all()) for one in model.policy.parameters()),
        "parameters are not finite after training with VecNormalize",
    )
    require(model.get_vec_normalize_env() is env, "get_vec_normalize_env does not return the VecNormalize")


def answers_what_does_not_fit(case: Case) -> None:
    """Kinds of spaces that the algorithm does not list are rejected in one line when it is built, unless it takes them.

    :raises ContractError: when they are met with a raw error
    """
    for other in _unlisted(case):
        try:
            _build(other)
        except Exception:  # of any kind: what is raised is judged by rejects()
            rejects(other, lambda other=other: _build(other), str(other))


def rejects_what_does_not_fit(case: Case) -> None:
    """Kinds of spaces that the algorithm does not list are rejected in one line when it is built.

    :raises ContractError: when they are not
    """
    for other in _unlisted(case):
        rejects(other, lambda other=other: _build(other), str(other))


def _unlisted(case: Case) -> Iterator[Case]:
    for observations in ("vector", "image", "dict"):
        for actions in ("discrete", "continuous"):
            if observations not in case.spec.observations or actions not in case.spec.actions:
                yield dataclasses.replace(
                    case, observations=observations, actions=actions, demonstrations=False, masked=False
                )


def _build(case: Case) -> Any:
    env = case.env()
    return case.target(_policy(case, env), env, device="cpu", seed=0)


def _policy(case: Case, env: Any) -> str:
    if "policy" not in inspect.signature(case.target.__init__).parameters:
        return "MlpPolicy"
    name = "MultiInput" if isinstance(env.observation_space, spaces.Dict) else "Mlp"
    return next(
        (one for one in (f"{name}Policy", f"{name}LstmPolicy") if one in case.target.policy_aliases),
        "MlpPolicy",
    )


def rejects(case: Case, build: Any, what: str) -> None:
    """Require that something is rejected with a ValueError or an AssertionError of one line.

    :param case: for the message
    :param build: called without arguments
    :param what: is rejected, for the message
    :raises ContractError: when it is not
    """
    try:
        build()
    except (ValueError, AssertionError) as error:
        if isinstance(error, ContractError):
            raise
        lines = str(error).strip().splitlines()
        require(len(lines) == 1, f"{case.spec.name} rejects {what} in {len(lines)} lines: {lines[:2]}")
    except Exception as error:  # whatever a person would see instead of one clear line breaks the contract
        raise ContractError(
            f"{case.spec.name} meets {what} with a raw {type(error).__name__}: {error}"
        ) from error
    else:
        raise ContractError(f"{case.spec.name} accepts {what}, which it does not list")


def takes_policy_kwargs(case: Case) -> None:
    """``policy_kwargs`` choose sizes: ``net_arch``, unless declared unsupported, and for images ``features_dim``.

    :raises ContractError: when they do not
    """
    if "net_arch" in case.spec.unsupported:
        rejects(
            case, lambda: case.target("MlpPolicy", case.env(), policy_kwargs={"net_arch": [24]}), "net_arch"
        )
        return
    wide = case.target(_policy(case, case.env()), case.env(), device="cpu", policy_kwargs={"net_arch": [24]})
    widths = {size for one in wide.policy.parameters() for size in one.shape}
    require(24 in widths, "policy_kwargs=dict(net_arch=[24]) builds no layer of 24 units")
    if "image" not in case.spec.observations:
        return
    images = dataclasses.replace(case, observations="screen", masked=False)
    names = [one for one in ("CnnPolicy", "CnnLstmPolicy") if one in case.target.policy_aliases]
    model = case.target(
        names[0], images.env(), device="cpu",
        policy_kwargs={"features_extractor_kwargs": {"features_dim": 24}},
        **({"buffer_size": 100} if isinstance(trained(case).model, OffPolicyAlgorithm) else {}),
    )  # fmt: skip
    found = {module.features_dim for module in model.policy.modules() if hasattr(module, "features_dim")}
    require(24 in found, f"features_extractor_kwargs=dict(features_dim=24) gives features of {sorted(found)}")
    chosen, _ = model.predict(images.batch(2), deterministic=True)
    require(len(chosen) == 2, "a policy with features_dim=24 does not act")


def keeps_its_replay_buffer(case: Case) -> None:
    """An off-policy algorithm's replay buffer comes back from a file.

    :raises ContractError: when it does not
    """
    model = trained(case).model
    if not isinstance(model, OffPolicyAlgorithm):
        return
    other = case.model()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replay.pkl"
        model.save_replay_buffer(path)
        other.load_replay_buffer(path)
    same(_replay(model), _replay(other), "replay buffers before and after a file")


def _replay(model: Any) -> Any:
    state = snapshot(model)
    return state["replay"] if "replay" in state else state["own"]["replay"]
