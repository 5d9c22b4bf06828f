"""Which algorithms are compatible with which environments."""

from __future__ import annotations

import pytest

from rlexp import registry
from rlexp.errors import UsageError


def test_every_built_in_target_exists() -> None:
    for algo in registry.algos().values():
        assert callable(registry.load(algo.target))
        if algo.masked_target is not None:
            assert callable(registry.load(algo.masked_target))
    for env in registry.envs().values():
        assert callable(registry.load(env.target))


def test_incompatibilities_name_compatible_algorithms() -> None:
    restaurant = registry.env("restaurant")
    line = registry.incompatibility(registry.algo("sac"), restaurant, "discrete", "vector")
    assert (
        line is not None
        and "sac is not compatible" in line
        and "lcpo" in line
        and "sac," not in line.split("algorithms:")[1]
    )
    assert (
        registry.incompatibility(registry.algo("lcpo"), registry.env("gym"), "discrete", "image") is not None
    )
    assert registry.incompatibility(registry.algo("lcpo"), restaurant, "discrete", "vector") is None
    assert (
        registry.incompatibility(registry.algo("lcpo"), restaurant, "discrete", "vector", masked=True) is None
    )
    assert (
        registry.incompatibility(
            registry.algo("recurrent_ppo"), restaurant, "discrete", "vector", masked=True
        )
        is not None
    )


def test_unknown_names() -> None:
    with pytest.raises(UsageError, match="did you mean 'lcpo'"):
        registry.algo("lpco")
