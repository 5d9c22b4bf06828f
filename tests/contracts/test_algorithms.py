"""Every algorithm of the registry keeps every contract, on every kind of environment that it supports."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from rlexp import registry, testing
from rlexp.testing import cases, runs, saving, spaces, training

_PAIRS = [pair for spec in registry.algos().values() if spec.trains for pair in testing.contracts(spec)]

# Settings that change what is saved and resumed.
_VARIANTS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "dqn": [
        ("rank", {"replay": "rank", "sort_every": 15, "dueling": True}),
        ("uniform", {"replay": "uniform", "buffer_size": 500}),
    ],
    "acer": [("lstm", {"policy": "MlpLstmPolicy"})],
    "recurrent_ppo": [
        ("shared", {"shared_lstm": True, "enable_critic_lstm": False, "before_lstm": [8], "layer_norm": True})
    ],
    "r2d2": [("rank", {"replay": "rank", "train_freq": 3}), ("per-actor", {"epsilon_base": 0.4})],
    "r2d3": [
        ("paper", {"loss": "paper", "demonstration_ratio": 0.5, "pretrain_updates": 0}),
        ("pretrained", {"pretrain_updates": 110}),
    ],
    "dqfd": [("pretrained", {"pretrain_updates": 110})],
    "sac_lstm": [("shared", {"shared_critic_lstm": True, "ent_coef": 0.1})],
    "slac": [
        ("lstm", {"actor_kind": "lstm", "actor_units": 8, "lstm_hidden_size": 8}),
        ("lee", {"variant": "lee", "actor_history": "obs_act", "critic_kind": "q_target"}),
    ],
    "bc": [("no_memory", {"lstm_hidden_size": 0})],
}


def _variants() -> list[Any]:
    found = []
    for name, variants in _VARIANTS.items():
        plain = cases.of(registry.algo(name))
        for label, changed in variants:
            chosen = [plain[0], *(case for case in plain if case.masked and label == "lstm")]
            found += [
                dataclasses.replace(case, settings={**case.settings, **changed}, variant=label)
                for case in chosen
            ]
    return found


def _pretrained() -> list[testing.Case]:
    return [case for case in _variants() if case.variant == "pretrained"]


def _name(value: Any) -> str:
    return getattr(value, "__name__", None) or str(value)


@pytest.mark.parametrize(("case", "contract"), _PAIRS, ids=_name)
def test_contract(case: testing.Case, contract: Any) -> None:
    contract(case)


@pytest.mark.parametrize(
    "spec", [spec for spec in registry.algos().values() if spec.trains], ids=lambda spec: spec.name
)
def test_what_is_not_listed_is_rejected(spec: registry.AlgoSpec) -> None:
    spaces.rejects_what_does_not_fit(cases.of(spec)[0])


@pytest.mark.parametrize("case", _variants(), ids=str)
@pytest.mark.parametrize(
    "contract",
    [training.resumes_with_many_environments, saving.comes_back_from_a_file],
    ids=_name,
)
def test_variant(case: testing.Case, contract: Any) -> None:
    contract(case)


@pytest.mark.parametrize("case", _pretrained(), ids=str)
@pytest.mark.parametrize("contract", [training.resumes_after_a_kill, runs.resumes_as_a_run], ids=_name)
def test_pretraining_resumes(case: testing.Case, contract: Any) -> None:
    contract(case)
