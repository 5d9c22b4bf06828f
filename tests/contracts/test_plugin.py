"""A package from outside tests its algorithm in one line, and what is broken is found."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3 import PPO

from rlexp import testing
from rlexp.registry import AlgoSpec

_PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"


def test_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(_PLUGIN))
    from bandit_plugin import SLOW_PPO

    testing.check_algorithm(SLOW_PPO)


class Forgetful(PPO):
    """Counts updates, learns more slowly the more there were, and forgets the count when it resumes."""

    updates = 0

    def train(self) -> None:
        self.updates += 1
        self.learning_rate = 0.01 / self.updates
        self._setup_lr_schedule()
        super().train()


class Curious(PPO):
    """Learns otherwise when it has been asked to act."""

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        self.ent_coef += 0.01
        return super().predict(*args, **kwargs)


class Deaf(PPO):
    """Does not stop when a callback says so."""

    def collect_rollouts(self, *args: Any, **kwargs: Any) -> bool:
        super().collect_rollouts(*args, **kwargs)
        return True


class Amnesic(PPO):
    """Its weights are not saved."""

    def save(self, path: Any, *args: Any, **kwargs: Any) -> None:
        kept = copy.deepcopy(self.get_parameters())
        for parameter in self.policy.parameters():
            parameter.data += 1.0
        super().save(path, *args, **kwargs)
        self.set_parameters(kept)


class Unseeded(PPO):
    """Draws from a generator that no seed reaches."""

    generator = np.random.default_rng()

    def train(self) -> None:
        self.policy.optimizer.param_groups[0]["lr"] = float(self.generator.random())
        super().train()
        for parameter in self.policy.parameters():
            parameter.data += float(self.generator.random())


@pytest.mark.parametrize(
    ("kind", "broken"),
    [
        (Forgetful, "resumes_exactly"),
        (Curious, "is_blind_to_evaluation"),
        (Deaf, "stops_when_a_callback_says_so"),
        (Amnesic, "comes_back_from_a_file"),
        (Unseeded, "is_blind_to_evaluation|is_decided_by_its_seed"),
    ],
)
def test_what_is_broken_is_found(kind: type[PPO], broken: str) -> None:
    spec = AlgoSpec(kind.__name__.lower(), f"{__name__}:{kind.__name__}", "", ("discrete",), ("vector",))
    with pytest.raises(testing.ContractError, match=broken):
        testing.check_algorithm(spec)


def test_what_is_declared_unsupported_has_to_be_rejected() -> None:
    spec = AlgoSpec(
        "ppo_", "stable_baselines3:PPO", "", ("discrete",), ("vector",), unsupported=("VecNormalize",)
    )
    (pair,) = [
        (case, contract)
        for case, contract in testing.contracts(spec)
        if contract.__name__ == "normalizes_or_says_no"
    ]
    with pytest.raises(testing.ContractError, match="accepts VecNormalize"):
        pair[1](pair[0])
