"""The settings of every built-in algorithm: ranges for the constructor, one name each, former names."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from rlexp import registry
from rlexp.algos.sac_lstm.sac_lstm import SACLSTM
from rlexp.config import paths, shipped
from rlexp.config.compose import compose
from rlexp.config.hydra_app import hydra_app
from rlexp.config.validate import check_value, former_names, policy_settings, validate
from rlexp.errors import UsageError
from rlexp.runs.stored import read_config

_GYM = ("env=gym", "env.id=Pendulum-v1", "total_timesteps=100")


@pytest.mark.parametrize(
    ("algo", "settings", "message"),
    [
        ("sac_lstm", {"gamma": 1.5}, "gamma: 1.5 given, must be greater than 0 and at most 1"),
        ("sac_lstm", {"ent_coef": "auto_x"}, "ent_coef: 'auto_x' given, allowed are auto, auto_0.1, 0.1"),
        ("slac", {"variant": "ebo"}, "did you mean 'elbo'"),
        ("slac", {"model_arch": [8, 0]}, r"model_arch: \[8, 0\] given, a list of positive numbers"),
        ("ppo", {"net_arch": {"pi": [8], "vf": 8}}, "one list per network"),
        ("r2d2", {"gamma": float("nan")}, "gamma: nan given, a finite number is needed"),
        ("r2d3", {"loss": "page"}, "'page' is now called 'dqfd'"),
    ],
)
def test_ranges_hold_for_settings_given_to_a_constructor(
    algo: str, settings: dict[str, Any], message: str
) -> None:
    config = registry.algo(algo).config
    assert config is not None
    given = {"sequence_length": 4, "burn_in": 0, "sequence_period": None, "buffer_size": 1000} | settings
    with pytest.raises(UsageError, match=message):
        validate(config, given, n_envs=1)


def test_no_limit_may_be_infinity_where_none_is_allowed() -> None:
    config = registry.algo("sac_lstm").config
    assert config is not None
    validate(config, {"max_grad_norm": float("inf"), "learning_rate": lambda progress: progress}, n_envs=1)
    with pytest.raises(UsageError, match="a finite number is needed"):
        validate(config, {"gamma": float("inf")}, n_envs=1)


def test_a_number_of_numpy_is_one() -> None:
    import numpy as np

    with pytest.raises(UsageError, match="must be at least 1"):
        check_value("batch_size", np.int64(0), {"at_least": 1})


@pytest.mark.parametrize(
    ("argument", "answer"),
    [
        ("algo.length=4", "algo.length: is now called algo.sequence_length"),
        ("algo.lstm_units=4", "algo.lstm_units: is now called algo.lstm_hidden_size"),
    ],
)
def test_a_former_name_on_the_command_line(argument: str, answer: str) -> None:
    with pytest.raises(UsageError, match=answer):
        compose(["algo=sac_lstm", *_GYM, argument])


def test_a_former_name_in_a_constructor() -> None:
    with pytest.raises(UsageError, match="length: is now called sequence_length"):
        SACLSTM("MlpPolicy", "Pendulum-v1", length=4)
    with pytest.raises(UsageError, match="lstm_units: is now called lstm_hidden_size"):
        SACLSTM("MlpPolicy", "Pendulum-v1", policy_kwargs={"lstm_units": 4})


def test_an_archive_with_former_names_is_loaded_with_its_settings(tmp_path: Path) -> None:
    small = {"actor_units": 8, "critic_units": 8, "lstm_hidden_size": 6}
    SACLSTM("MlpPolicy", "Pendulum-v1", buffer_size=100, sequence_length=5, policy_kwargs=small).save(
        tmp_path / "now.zip"
    )
    with zipfile.ZipFile(tmp_path / "now.zip") as now, zipfile.ZipFile(tmp_path / "old.zip", "w") as old:
        for member in now.namelist():
            data = now.read(member)
            if member == "data":
                settings = json.loads(data)
                settings["length"] = settings.pop("sequence_length")
                settings["policy_kwargs"]["lstm_units"] = settings["policy_kwargs"].pop("lstm_hidden_size")
                data = json.dumps(settings).encode()
            old.writestr(member, data)
    model = SACLSTM.load(tmp_path / "old.zip")
    assert model.sequence_length == 5 and model.policy.lstm_hidden_size == 6 and not hasattr(model, "length")


@pytest.mark.parametrize("algo", ["sac_lstm", "slac"])
def test_the_config_of_an_older_run_is_read_and_found(
    algo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = compose([f"algo={algo}", *_GYM])
    old = paths.resolved(now)
    config = registry.algo(algo).config
    assert config is not None
    for before, present in former_names(config).items():
        old["algo"][before] = old["algo"].pop(present)
    (tmp_path / "config.yaml").write_text(OmegaConf.to_yaml(OmegaConf.create(old)))
    assert read_config(tmp_path / "config.yaml").algo == now.algo
    variant = paths.variant(now)
    assert variant == paths.variant(read_config(tmp_path / "config.yaml"))
    monkeypatch.setattr("rlexp.config.renamed._new_names", lambda config: {})
    assert variant == paths.variant(OmegaConf.create(old))  # what an older version made of it


def test_a_setting_that_never_had_another_name_keeps_it_in_the_hash() -> None:
    from rlexp.config.renamed import with_old_names

    settings = {"algo": {"name": "r2d2", "sequence_length": 40, "lstm_hidden_size": 64}}
    assert with_old_names(settings) == settings


# ------------------------------------------------------------------------------------------------ the three places

_LEARNING = [spec.name for spec in registry.algos().values() if spec.trains]
# Of every algorithm of Stable-Baselines3; the runner gives them, or nobody sets them for a run.
_GENERAL = {
    "policy", "env", "stats_window_size", "tensorboard_log", "policy_kwargs", "verbose", "seed", "device",
    "_init_setup_model",
}  # fmt: skip


def _signature(classes: tuple[type[Any], ...]) -> set[str]:
    """The named arguments of constructors."""
    named: set[str] = set()
    for one in classes:
        if "__init__" in vars(one):
            parameters = inspect.signature(one.__init__).parameters.values()  # type: ignore[misc]
            named |= {
                each.name
                for each in parameters
                if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
            }
    return named - {"self"}


def _documented(classes: tuple[type[Any], ...]) -> set[str]:
    return {name for one in classes for name in re.findall(r":param (\w+):", vars(one).get("__doc__") or "")}


@pytest.mark.parametrize("algo", _LEARNING)
def test_constructor_dataclass_and_yaml_have_the_same_settings(algo: str) -> None:
    spec = registry.algo(algo)
    assert spec.config is not None
    target = registry.load(spec.target)
    policies = tuple(one for policy in target.policy_aliases.values() for one in policy.__mro__)
    fields = {one.name for one in dataclasses.fields(spec.config)} - {"name"}
    of_policy = set(policy_settings(spec.config))

    yaml = OmegaConf.load(shipped.conf_dir() / "algo" / f"{algo}.yaml")
    with hydra_app() as app:
        composed = app.compose([f"algo={algo}", "env=gym"]).algo
    assert {str(key) for key in yaml} - {"defaults"} <= fields | {"name"}
    assert set(OmegaConf.missing_keys(composed)) <= {
        "algo.demonstrations"
    }  # every other one has a value in some YAML

    fields = {name.removesuffix("_schedule") for name in fields}  # given as a function of the progress
    arguments = _signature(target.__mro__)
    assert fields - of_policy - {"policy"} <= arguments, "a setting that the constructor does not take"
    assert of_policy <= _signature(policies), "a setting that no policy takes"
    own = tuple(one for one in target.__mro__ if one.__module__.startswith(f"rlexp.algos.{algo}."))
    assert _signature(own) <= fields | _GENERAL, "an argument that no run can set"

    undocumented = fields - of_policy - _documented(target.__mro__) | of_policy - _documented(policies)
    assert not undocumented, "without a :param line"


@pytest.mark.parametrize("algo", _LEARNING)
def test_a_parameter_is_documented_where_it_is(algo: str) -> None:
    target = registry.load(registry.algo(algo).target)
    for one in (target, *target.policy_aliases.values()):
        if one.__module__.startswith("rlexp."):
            assert "likewise" not in (one.__doc__ or ""), one
