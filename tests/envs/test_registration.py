"""Our environments have gymnasium ids, whichever of the two packages is imported first."""

from __future__ import annotations

import subprocess
import sys
import warnings

import gymnasium
import pytest

from rlexp import registry
from rlexp.envs.registration import ENTRY_POINTS


@pytest.mark.parametrize("first", ["import rlexp, gymnasium", "import gymnasium, rlexp"])
def test_importing_rlexp_registers_every_id(first: str) -> None:
    code = f"{first}\nprint(sorted(id for id in gymnasium.registry if id.startswith('rlexp/')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(sorted(ENTRY_POINTS))


def test_without_an_import_the_id_names_the_package() -> None:
    code = "import gymnasium\nprint(gymnasium.make('rlexp:rlexp/BlindCliffwalk-v0').action_space)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "Discrete(2)"


def test_importing_rlexp_does_not_import_gymnasium() -> None:
    code = "import rlexp, sys\nprint('gymnasium' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("id", "name", "options"),
    [
        ("rlexp/Restaurant-v0", "restaurant", {}),
        ("rlexp/Restaurant-v0", "restaurant", {"masks": True}),
        ("rlexp/BlindCliffwalk-v0", "blind_cliffwalk", {}),
        ("rlexp/DataCenter-v0", "datacenter", {"backend": "surrogate"}),
    ],
)
def test_an_id_is_the_environment_that_runs_train_on(id: str, name: str, options: dict[str, object]) -> None:
    made = gymnasium.make(id, **options)
    trained_on = registry.load(registry.env(name).target)(**options)
    assert made.action_space == trained_on.action_space
    assert made.observation_space == trained_on.observation_space
    assert type(made.unwrapped) is type(trained_on.unwrapped)


def test_stable_baselines3_vectorises_an_id() -> None:
    from stable_baselines3.common.env_util import make_vec_env

    import rlexp  # noqa: F401

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*render_mode")
        env = make_vec_env("rlexp/Restaurant-v0", n_envs=2)
    assert env.reset().shape == (2, 268)
