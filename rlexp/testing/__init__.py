"""Contracts that every algorithm and environment keeps, for ours and for those of plug-in packages.

A package that brings an algorithm tests it in one line::

    def test_contracts():
        rlexp.testing.check_algorithm("my_algorithm")

and an environment likewise with :func:`check_environment`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rlexp import registry
from rlexp.registry import AlgoSpec
from rlexp.testing import callbacks, cases, runs, saving, spaces, training
from rlexp.testing.cases import Case, ContractError
from rlexp.testing.environments import check_environment

__all__ = ["Case", "Contract", "ContractError", "check_algorithm", "check_environment", "contracts"]

Contract = Callable[[Case], None]

EVERYWHERE: tuple[Contract, ...] = (
    training.is_blind_to_evaluation,
    training.evaluates_alike,
    training.resumes_exactly,
    saving.comes_back_from_a_file,
    saving.policy_comes_back_from_a_file,
    spaces.predicts_in_shape,
)
"""Checked on every kind of environment that the algorithm supports."""

ONCE: tuple[Contract, ...] = (
    training.is_decided_by_its_seed,
    training.resumes_with_many_environments,
    training.resumes_after_a_kill,
    training.resumes_past_damage,
    saving.learns_on_from_a_file,
    saving.hands_over_its_parameters,
    *callbacks.CONTRACTS,
    spaces.hints_at_the_gym_api,
    spaces.trains_in_subprocesses,
    spaces.normalizes_or_says_no,
    spaces.answers_what_does_not_fit,
    spaces.takes_policy_kwargs,
    spaces.keeps_its_replay_buffer,
)
"""Checked on one kind of environment, the simplest."""

RUNS: tuple[Contract, ...] = (runs.resumes_as_a_run,)
"""Checked on the simplest kind of environment; needs the algorithm's name and its config ``algo/<name>.yaml``."""


def contracts(
    algorithm: str | AlgoSpec, settings: Mapping[str, Any] | None = None, demonstrations: bool | None = None
) -> list[tuple[Case, Contract]]:
    """Return every contract of an algorithm with the case that it is checked on.

    :param algorithm: name of a registered algorithm, or its spec
    :param settings: see :func:`check_algorithm`
    :param demonstrations: see :func:`check_algorithm`
    """
    spec = registry.algo(algorithm) if isinstance(algorithm, str) else algorithm
    found = cases.of(spec, settings, demonstrations)
    simplest = next(case for case in found if not case.masked)
    once = [*ONCE, *(RUNS if registry.algos().get(spec.name) is spec else ())]
    return [
        *((case, contract) for case in found for contract in EVERYWHERE),
        *((simplest, one) for one in once),
    ]


def check_algorithm(
    algorithm: str | AlgoSpec, settings: Mapping[str, Any] | None = None, demonstrations: bool | None = None
) -> None:
    """Check every contract of an algorithm, on every kind of tiny environment that it supports; a minute or less.

    :param algorithm: name of a registered algorithm, or its spec; whole runs are checked of registered ones alone
    :param settings: hyper-parameters as in its ``algo`` config, small enough that 48 steps hold some updates; None:
        rollouts of 8 steps, or 12 steps before learning starts and a replay buffer of 40, by its base class
    :param demonstrations: whether it takes ``demonstrations=``; None: no, but for our own that do
    :raises ContractError: naming case, contract and what broke it
    :raises UsageError: when no algorithm has this name
    """
    for case, contract in contracts(algorithm, settings, demonstrations):
        try:
            contract(case)
        except Exception as error:  # the report names case and contract, whatever was raised
            raw = "" if isinstance(error, ContractError) else f"{type(error).__name__}: "
            raise ContractError(f"{case}: {contract.__name__}: {raw}{error}") from error
