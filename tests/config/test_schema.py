"""Schema, YAML and constructors have the same settings."""

from __future__ import annotations

import inspect

import pytest
from omegaconf import OmegaConf

from rlexp import registry
from rlexp.config.compose import compose
from rlexp.config.shipped import conf_dir
from rlexp.config.validate import policy_settings
from rlexp.errors import UsageError

_BUDGET = ("total_timesteps=1000",)
_NEEDS = dict.fromkeys(("bc", "dqfd", "r2d3"), ("algo.demonstrations=some.npz",))
_ALGOS = sorted(path.stem for path in (conf_dir() / "algo").glob("*.yaml"))


def _task(algo: str) -> str:
    """A compatible environment: one that has the controller, else one by the kind of actions."""
    spec = registry.algo(algo)
    if spec.controller is not None:
        known = ("restaurant", "datacenter")
        return next(name for name in known if spec.controller in registry.env(name).controllers)
    return "restaurant" if "discrete" in spec.actions else "gym"


def _overrides(algo: str, env: str) -> tuple[str, ...]:
    """Overrides that an algorithm and an environment need."""
    return (*_BUDGET, *(["env.id=Pendulum-v1"] if env == "gym" else []), *_NEEDS.get(algo, ()))


@pytest.mark.parametrize("algo", _ALGOS)
def test_algorithm_settings_are_constructor_arguments(algo: str) -> None:
    spec = registry.algo(algo)
    env = _task(algo)
    cfg = compose([f"algo={algo}", f"env={env}", *_overrides(algo, env)])
    if not spec.trains:
        return
    known: set[str] = set()
    for base in registry.load(spec.target).__mro__:
        if "__init__" in vars(base):
            known |= set(inspect.signature(base.__init__).parameters)
    arguments = {str(key) for key in cfg.algo} - {"name"} - set(policy_settings(spec.config))
    arguments = {name.removesuffix("_schedule") for name in arguments}  # given as a function of the progress
    assert arguments <= known, arguments - known


@pytest.mark.parametrize("algo", _ALGOS)
def test_configs_are_complete(algo: str) -> None:
    env = _task(algo)
    cfg = compose([f"algo={algo}", f"env={env}", *_overrides(algo, env)])
    assert not OmegaConf.missing_keys(cfg)


@pytest.mark.parametrize("number", range(1, 7))
def test_benchmark_presets(number: int) -> None:
    cfg = compose(["algo=lcpo", f"env/benchmark=env{number}"])
    assert cfg.env.error_rate == {1: 0.0, 2: 0.0, 6: 0.3}.get(number, 0.15)
    assert cfg.env.masks == (number not in (2, 4))
    assert cfg.env.user == ("unfriendly" if number == 5 else "sampled")
    assert list(cfg.env.disabled_actions) == ["repeat", "restart"]


def test_ppo_shares_the_settings_of_lcpo_on_the_dialogue_task() -> None:
    ppo, lcpo = compose(["algo=ppo"]).algo, compose(["algo=lcpo"]).algo
    shared = {key for key in ppo if key in lcpo and key != "name"}
    assert {"learning_rate", "n_steps", "batch_size", "net_arch", "ent_coef", "gae_lambda"} <= shared
    assert {key: ppo[key] for key in shared} == {key: lcpo[key] for key in shared}


def test_missing_values_are_all_named() -> None:
    with pytest.raises(UsageError, match=r"env\.id"):
        compose(["algo=ppo", "env=gym", *_BUDGET])
